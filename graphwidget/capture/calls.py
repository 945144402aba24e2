"""The log of backward calls: what each was asked to do, what was foreseen, and what came of it.

Every call of `backward` and `autograd.grad` starts the engine through one function, which is wrapped here.
Before a call its graph is looked at and a forecast made; afterwards the outcome is compared. Where they
disagree, torch is right: what can no longer be told is left unknown.

A call in a training loop must cost next to nothing. So a call all of whose nodes are newer than anything
that was ever freed, and whose graph has the same shape as one looked at before at the same line, is only
counted: it runs over everything, as its model did.

Not the user's calls, and not recorded: those inside a running backward (custom Functions, hooks, re-entrant
checkpoints), and those that torch makes on fake or functional tensors while it traces.
"""

from __future__ import annotations

import sys
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from graphwidget.capture import torch_internals as ti
from graphwidget.capture.freed import Freed
from graphwidget.capture.identity import Identity
from graphwidget.capture.owners import Search
from graphwidget.capture.provenance import Provenance
from graphwidget.capture.snapshot import take
from graphwidget.model import BackwardCall, Forecast, Kind, Node, Place, SlotState, Snapshot, TensorRef

__all__ = ["CallLog", "Forecaster"]

Forecaster = Callable[..., Forecast]

DETAILED = 16  # calls of one line that are looked at in full, however alike they are
SAMPLE = 64  # after that every so many
MAX_HOLDINGS = 30_000  # remembered (path, node) pairs of earlier calls, all together
FREE_SEARCHES = 50  # calls of a cell before which names are looked up at any price
SEARCH_SHARE = 0.02  # of the time, for looking up names after that

_HOLDING = (SlotState.HELD, SlotState.STALE, SlotState.PACKED)
_FREED_WORDS = ("second time", "extra time", "already been freed")
_REASONS = {  # a forecast's reason -> words in torch's message
    "freed": _FREED_WORDS,
    "inplace": ("modified by an inplace operation",),
    "no_grad": ("does not require grad", "grad_fn"),
    "not_scalar": ("implicitly created",),
    "unused": ("appears to not have been used",),
    "detached": ("detached in-place",),
    "leaf_interior": ("graph interior",),
    "not_differentiable": ("once_differentiable", "not differentiable", "not implemented"),
    "checkpoint": ("checkpoint",),
    "overlap": ("written-to tensor",),
}


@dataclass(slots=True)
class _Pending:
    """A call between its two ends. Plain data: nothing of the user's is held."""

    n: int
    place: Place
    api: Any
    keep: bool
    create: bool
    allow_unused: bool
    has_inputs: bool
    newest: int
    alone: bool = True
    shape: int = 0
    model: BackwardCall | None = None  # the call of the same shape, for one that is only counted
    numbers: list[int] = field(default_factory=list)
    graph: Snapshot | None = None
    forecast: Forecast | None = None
    held: dict[str, int] | None = None


class CallLog:
    """Records calls while it is installed.

    Parameters
    ----------
    forecaster
        ``analysis.engine.forecast`` or the like; None: no forecast is made.
    search
        Looks names up: gets the frames of cells that are live, returns what it found.
    finished
        Called with each call when it is over, and the graph as it then was (None if it was only counted).
    problem
        Called with an exception of our own; the user's call goes on.
    """

    def __init__(
        self,
        identity: Identity,
        provenance: Provenance,
        *,
        forecaster: Forecaster | None = None,
        search: Callable[[Sequence[FrameType]], Search] = lambda frames: Search(),
        finished: Callable[[BackwardCall, Snapshot | None], None] = lambda call, graph: None,
        problem: Callable[[BaseException], None] = lambda error: None,
        lock: Any = None,
    ) -> None:
        self.identity, self.provenance = identity, provenance
        self.forecaster, self.search = forecaster, search
        self.finished, self.problem = finished, problem
        self.lock = lock or threading.RLock()
        self.freed = Freed()
        self.count = 0
        self.running: dict[int, _Pending] = {}
        self.recent: dict[int, BackwardCall] = {}  # the calls that the tracker still remembers
        self._previous: Snapshot | None = None
        self.watched_from = 0
        self._held: OrderedDict[int, dict[str, int]] = OrderedDict()
        self._seen: dict[tuple[Place | None, str], int] = {}
        self._models: dict[tuple[int, int], BackwardCall] = {}
        self._searches = 0
        self._search_time = 0.0
        self._since = perf_counter()

    def install(self) -> None:
        """Begin to record."""
        self.watched_from = ti.sequence_nr()
        self.freed.above(self.watched_from - 1)
        ti.wrap_engine(self._wrap)

    def uninstall(self) -> None:
        """Restore what `install` found."""
        ti.unwrap_engine()

    def begin_cell(self) -> None:
        """A new cell: look closely at its calls again."""
        self._searches, self._search_time, self._since = 0, 0.0, perf_counter()
        self._seen.clear()
        if len(self._models) > 1000:
            self._models.clear()

    def forget_missing(self, alive: set[int]) -> None:
        """Drop what is remembered of nodes that have died."""
        self.freed.forget_missing(alive)

    # ------------------------------------------------------------ around the engine

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if ti.in_backward() or torch.compiler.is_compiling():
                return original(outputs, *args, **kwargs)
            pending = self._before(outputs, args, kwargs)
            if pending is None:
                return original(outputs, *args, **kwargs)
            with ti.nested():
                try:
                    result = original(outputs, *args, **kwargs)
                except BaseException as error:
                    self._after(pending, outputs, args, error)
                    raise
                self._after(pending, outputs, args, None)
                return result

        return run_backward

    def _before(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Pending | None:
        """Look at the graph before the call; None: this is no call of the user's."""
        try:
            if ti.is_fake(outputs):
                return None
            frames = self.cell_frames(sys._getframe(2))
            with self.lock:
                self.provenance.lines.boundary()
                pending = self._describe(args, kwargs, self.provenance.where(frames[0] if frames else None))
                pending.alone = not self.running
                self.running[pending.n] = pending
                try:
                    self._look(pending, outputs, args, frames)
                except Exception as error:
                    self.problem(error)
                return pending
        except Exception as error:
            self.problem(error)
            return None

    def cell_frames(self, frame: FrameType | None) -> list[FrameType]:
        """Live frames of cells, innermost first."""
        scope = self.provenance.book.scope
        found = []
        while frame is not None:
            if scope(frame.f_code) is not None:
                found.append(frame)
            frame = frame.f_back
        return found

    def _describe(self, args: tuple[Any, ...], kwargs: dict[str, Any], place: Place) -> _Pending:
        """Arguments of the engine: gradients, keep_graph, create_graph, inputs, allow_unreachable, accumulate_grad."""

        def argument(position: int, name: str, default: Any) -> Any:
            return args[position] if len(args) > position else kwargs.get(name, default)

        n = self.count
        self.count += 1
        accumulate = bool(argument(5, "accumulate_grad", False))
        return _Pending(
            n,
            place,
            "backward" if accumulate else "autograd.grad",
            bool(argument(1, "keep_graph", False)),
            bool(argument(2, "create_graph", False)),
            bool(argument(4, "allow_unreachable", False)),
            bool(argument(3, "inputs", None)),
            ti.sequence_nr(),
        )

    # ------------------------------------------------------------ before

    def _look(self, pending: _Pending, outputs: Any, args: tuple[Any, ...], frames: list[FrameType]) -> None:
        key = (pending.place if pending.place.iteration is None else replace(pending.place, iteration=None), pending.api)
        seen = self._seen[key] = self._seen.get(key, 0) + 1
        nodes, numbers = survey(outputs)
        own = [number for number in numbers if number != ti.NO_SEQUENCE]
        pending.numbers = own
        pending.shape = _shape(nodes, own, key, pending)
        fresh = bool(own) and min(own) > self.freed.newest
        model = self._models.get((pending.shape, len(nodes)))
        if fresh and model is not None and seen > DETAILED and seen % SAMPLE:
            pending.model = model
            return
        if not fresh:
            self._settle(nodes, numbers)
        del nodes
        search = self._search(frames)
        pending.held = holdings_by_number(search) if search is not None else None
        pending.graph = self._take(outputs, args, search)
        del search
        if self.forecaster is not None:
            pending.forecast = self.forecaster(
                pending.graph,
                pending.graph.roots,
                inputs=pending.graph.inputs if pending.has_inputs else None,
                retain_graph=pending.keep,
                create_graph=pending.create,
                api=pending.api,
                allow_unused=pending.allow_unused,
                grad_given=True,
            )

    def _settle(self, nodes: list[Any], numbers: list[int]) -> None:
        """Nodes of calls that were only counted may be met again: find out which call freed each."""
        names = [ti.name_of(node) for node in nodes]
        self.freed.settle(numbers, self.identity.assign(nodes, numbers, names))

    def _take(self, outputs: Any, args: tuple[Any, ...], search: Search | None) -> Snapshot:
        inputs = args[3] if len(args) > 3 and args[3] else ()
        snapshot = take(
            list(outputs),
            inputs=list(inputs) if isinstance(inputs, (tuple, list)) else [inputs],
            owners=search.holdings if search is not None else (),
            identity=self.identity,
            places=self.provenance,
            freed_by=self.freed,
            previous=self._previous,
            watched_from=self.watched_from,
        )
        self._previous = snapshot
        return snapshot

    def _search(self, frames: list[FrameType], *, force: bool = False) -> Search | None:
        """Names of what is alive, unless looking has taken too large a share of the time."""
        now = perf_counter()
        self._searches += 1
        if not force and self._searches > FREE_SEARCHES and self._search_time > SEARCH_SHARE * (now - self._since):
            return None
        found = self.search(frames)
        self._search_time += perf_counter() - now
        return found

    # ------------------------------------------------------------ after

    def _after(self, pending: _Pending, outputs: Any, args: tuple[Any, ...], error: BaseException | None) -> None:
        try:
            with self.lock:
                self.running.pop(pending.n, None)
                if pending.model is not None and error is None:
                    call, after = self._counted(pending, pending.model), None
                else:
                    call, after = self._recorded(pending, outputs, args, error)
                self.freed.above(ti.sequence_nr() - 1)
                self.finished(call, after)
        except Exception as problem:
            self.problem(problem)

    def _counted(self, pending: _Pending, model: BackwardCall) -> BackwardCall:
        """A call like an earlier one: everything in it was new, so it ran over everything."""
        if not pending.keep:
            self.freed.add_whole(pending.n, pending.numbers)
        return replace(
            model,
            n=pending.n,
            place=pending.place,
            newest_seq=pending.newest,
            executed=array("q"),
            reached_uids=(),
            graph=None,
            same_as=model.n if model.same_as is None else model.same_as,
            forecast="ok",
            thread=threading.get_ident(),
        )

    def _recorded(
        self, pending: _Pending, outputs: Any, args: tuple[Any, ...], error: BaseException | None
    ) -> tuple[BackwardCall, Snapshot | None]:
        before, forecast = pending.graph, pending.forecast
        if before is None:  # counted, but it raised after all; or looking failed
            before, forecast = self._take(outputs, args, None), None
        text = None if error is None else BaseException.__str__(error)
        agreed = forecast is not None and pending.alone and _agrees(forecast, text)
        later = None
        if not agreed:
            later = self._take(outputs, args, None)
        executed = _executed(before, forecast if agreed else None, later, error is None and not pending.has_inputs)
        if error is not None and agreed and text is not None and executed and not pending.keep:
            later = self._take(outputs, args, None)
            if not _same_freed(before, later, executed):
                agreed, executed = False, _newly_freed(before, later)
        call = self._call(pending, before, forecast, error, text, agreed, executed)
        if not pending.keep:
            self._release(pending, before, executed)
        after = _afterwards(before, executed, None if pending.keep else pending.n)
        if error is None and agreed and not pending.has_inputs and call.executed_count == len(before):
            self._models[(pending.shape, len(before))] = call
        if call.error and call.freed_by is not None:
            call = self._with_carriers(call, before)
        return call, after

    def _release(self, pending: _Pending, before: Snapshot, executed: Sequence[int]) -> None:
        inner = [i for i in executed if before.kind[i] != Kind.ACCUMULATE]
        self.freed.add(pending.n, (before.uid[i] for i in inner), max((before.seq[i] for i in inner), default=-1))
        if pending.held:
            self._held[pending.n] = pending.held
            while sum(map(len, self._held.values())) > MAX_HOLDINGS and len(self._held) > 1:
                self._held.popitem(last=False)

    def _call(
        self,
        pending: _Pending,
        before: Snapshot,
        forecast: Forecast | None,
        error: BaseException | None,
        text: str | None,
        agreed: bool,
        executed: Sequence[int],
    ) -> BackwardCall:
        failed = _failed_node(before, forecast if agreed else None, text)
        freed_by = None
        if text is not None and any(words in text for words in _FREED_WORDS):
            freed_by = self.freed.get(before.uid[failed]) if failed is not None else _only_one(before, self.freed)
        slots = [s for i in executed for s in before.slots_of(i) if before.slot_state[s] in _HOLDING]
        leaves = [i for i in executed if before.kind[i] == Kind.ACCUMULATE]
        slot = forecast.fails_slot if agreed and forecast is not None and error is not None else None
        return BackwardCall(
            n=pending.n,
            place=pending.place,
            api=pending.api,
            retain_graph=pending.keep,
            create_graph=pending.create,
            roots=before.roots,
            root_names=tuple(before.name_of(r.node) if r.node >= 0 else "" for r in before.roots),
            inputs=before.inputs if pending.has_inputs else None,
            result="ok" if error is None else "raised",
            error_type=None if error is None else type(error).__name__,
            error=text,
            forecast=forecast.word if forecast is not None else "unknown",
            assumes=forecast.assumes if forecast is not None else (),
            failed_node=before.name_of(failed) if failed is not None else None,
            failed_uid=before.uid[failed] if failed is not None else None,
            failed_slot=slot.name if slot is not None else None,
            failed_place=before.place_of(failed) if failed is not None else None,
            freed_by=freed_by,
            executed=array("q", (before.uid[i] for i in executed)),
            executed_count=len(executed),
            freed_slots=0 if pending.keep else len(slots),
            freed_bytes=0 if pending.keep else _bytes(before, slots),
            reached=tuple(leaf.paths[0] for i in leaves if (leaf := before.leaves.get(i)) is not None and leaf.paths),
            reached_uids=tuple(before.uid[i] for i in leaves),
            newest_seq=pending.newest,
            thread=threading.get_ident(),
            graph=before,
        )

    # ------------------------------------------------------------ who carried the old part over

    def _with_carriers(self, call: BackwardCall, graph: Snapshot) -> BackwardCall:
        """Paths that held the tensors at the border of what an earlier call freed, then and now."""
        old = {uid for uid, n in self.freed.items() if n == call.freed_by}
        earlier = self.recent.get(call.freed_by) if call.freed_by is not None else None
        if earlier is not None:
            old.update(earlier.executed)
            if not earlier.executed:
                self.recent[earlier.n] = replace(earlier, executed=array("q", sorted(old)))
        border = boundary(graph, old)
        numbers = {graph.seq[i] for i in border}
        search = self._search(self.cell_frames(sys._getframe(1)), force=True)
        now = holdings_by_number(search) if search is not None else {}
        del search
        then = self._held.get(call.freed_by) if call.freed_by is not None else None
        inside = {graph.seq[i] for i in range(len(graph))} - {graph.seq[r.node] for r in call.roots if r.node >= 0}
        paths = carriers(numbers, inside - {-1}, now if then is None else then, now)
        return replace(call, carriers=paths, boundary=tuple(graph.uid[i] for i in border))


def survey(outputs: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """The nodes below the roots and their sequence numbers, and nothing else: a microsecond a node."""
    nodes: list[Any] = []
    numbers: list[int] = []
    found: set[Any] = set()
    readers: dict[type, tuple[Any, Any]] = {}
    for output in outputs:
        node = _root_node(output)
        if node is not None and node not in found:
            found.add(node)
            nodes.append(node)
    for node in nodes:  # grows while it is read
        cls = type(node)
        reader = readers.get(cls)
        if reader is None:
            reader = readers[cls] = ti.node_readers(cls)[:2]
        next_of, number_of = reader
        numbers.append(number_of(node))
        for after, _ in next_of(node):
            if after is not None and after not in found:
                found.add(after)
                nodes.append(after)
    return nodes, numbers


def _root_node(output: Any) -> Any:
    if ti.is_tensor(output):
        return ti.history(output, asked=True)[0]
    edge = ti.as_edge(output)
    return None if edge is None else edge[0]


def _shape(nodes: list[Any], numbers: list[int], key: object, pending: _Pending) -> int:
    """Equal for two calls of one line whose graphs were made by the same operations in the same order."""
    base = max(numbers, default=0)
    gaps = tuple([base - number for number in numbers])
    kinds = tuple([type(node) for node in nodes])
    return hash((key, pending.keep, pending.create, pending.has_inputs, gaps, kinds))


def holdings_by_number(search: Search) -> dict[str, int]:
    """Path -> sequence number of the node that made the tensor, without leaves and views in doubt."""
    found: dict[str, int] = {}
    for holding in search.holdings:
        if len(found) >= MAX_HOLDINGS // 10:
            break
        if holding.is_leaf or ti.maybe_stale_view(holding.tensor):
            continue
        node = ti.grad_fn(holding.tensor)
        if node is not None:
            found[holding.path] = node._sequence_nr()
    return found


def boundary(graph: Snapshot, old: set[int]) -> tuple[int, ...]:
    """Indices of the old nodes (by uid) that new ones lead into, seen from the roots."""
    border: set[int] = set()
    seen: set[int] = set()
    stack = [root.node for root in graph.roots if root.node >= 0]
    while stack:
        index = stack.pop()
        if index in seen:
            continue
        seen.add(index)
        if graph.kind[index] == Kind.ACCUMULATE:
            continue
        if graph.uid[index] in old:
            border.add(index)
        else:
            stack.extend(graph.next(index))
    return tuple(sorted(border))


def carriers(border: set[int], inside: set[int], then: dict[str, int], now: dict[str, int]) -> tuple[str, ...]:
    """Paths that held a border node (by sequence number) when it was freed and still do.

    If none still does, those that did then: the variable has been given a new value since. If only locals of a
    function that has returned did, those that hold it now. If nobody ever held a border node, the tensors
    made before the freeing call that lie in the graph.
    """
    held_then = {path for path, number in then.items() if number in border}
    held_now = {path for path, number in now.items() if number in border}
    still = {path for path in held_now & held_then if now[path] == then[path]}
    if not (held_then or held_now):
        held_then = {path for path, number in then.items() if number in inside}
        still = {path for path in held_then if now.get(path) == then[path]}
    if still:
        return _sorted(still)
    fresh = held_now - held_then
    if fresh and all(":" in path for path in held_then):
        return _sorted(fresh)
    return _sorted(held_then)


def _sorted(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(paths, key=lambda path: (len(path), path)))


# ---------------------------------------------------------------- what came of it


def _agrees(forecast: Forecast, text: str | None) -> bool:
    """Whether a call came out as the forecast said. `text` is the error's message."""
    if text is None:
        return forecast.ok is True
    return forecast.ok is False and any(words in text for words in _REASONS.get(str(forecast.reason), ()))


def _executed(before: Snapshot, forecast: Forecast | None, later: Snapshot | None, everything: bool) -> list[int]:
    """Indices of the nodes that ran, in engine order where the forecast knew it."""
    if forecast is not None:
        return [node.index for node in forecast.executes]
    if everything:
        return list(range(len(before)))
    return _newly_freed(before, later) if later is not None else []


def _newly_freed(before: Snapshot, later: Snapshot) -> list[int]:
    """Nodes with a slot that held something before and is freed now."""
    found = []
    for index in range(len(before)):
        after = later.index_of.get(before.uid[index])
        if after is None:
            continue
        slots, slots_after = before.slots_of(index), later.slots_of(after)
        if any(
            before.slot_state[a] in _HOLDING and later.slot_state[b] == SlotState.FREED
            for a, b in zip(slots, slots_after, strict=False)
        ):
            found.append(index)
    return found


def _same_freed(before: Snapshot, later: Snapshot, executed: Sequence[int]) -> bool:
    """Whether exactly the nodes that were said to run have lost what they held."""
    holding = {i for i in executed if any(before.slot_state[s] in _HOLDING for s in before.slots_of(i))}
    return holding == set(_newly_freed(before, later))


def _failed_node(before: Snapshot, forecast: Forecast | None, text: str | None) -> int | None:
    """Index of the node at which the call failed, None: unknown, or it failed before any node ran."""
    if text is None:
        return None
    if forecast is not None:
        node: Node | None = forecast.fails_at
        return node.index if node is not None else None
    wanted = None
    if any(words in text for words in _FREED_WORDS):
        wanted = SlotState.FREED
    elif "modified by an inplace operation" in text:
        wanted = SlotState.STALE
    if wanted is None or any(kind in (Kind.CUSTOM, Kind.COPY_SLICES, Kind.COMPILED) for kind in before.kind):
        return None
    found = {
        i for i in range(len(before)) if any(before.slot_state[s] == wanted for s in before.slots_of(i))
    }
    return found.pop() if len(found) == 1 else None


def _only_one(before: Snapshot, freed: Freed) -> int | None:
    """The call that freed all that is freed in this graph, if it was one."""
    found = {n for uid in before.uid if (n := freed.get(uid)) is not None}
    return found.pop() if len(found) == 1 else None


def _bytes(snapshot: Snapshot, slots: Sequence[int]) -> int:
    """Bytes behind slots, once per storage."""
    storages = {snapshot.slot_storage[s] for s in slots} - {-1}
    loose = sum(snapshot.slot_bytes[s] for s in slots if snapshot.slot_storage[s] < 0)
    return loose + sum(snapshot.storages[at].bytes for at in storages)


def _afterwards(before: Snapshot, executed: Sequence[int], n: int | None) -> Snapshot:
    """The graph as the call left it. `n` None: it freed nothing."""
    if n is None:
        return before
    state, freed_by = bytearray(before.slot_state), before.slot_freed_by[:]
    for i in executed:
        for s in before.slots_of(i):
            if state[s] in _HOLDING:
                state[s], freed_by[s] = SlotState.FREED, n
    return replace(before, slot_state=state, slot_freed_by=freed_by)

