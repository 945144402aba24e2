"""The log of backward calls: what each was asked to do, what was foreseen, and what came of it.

Every call of `backward` and `autograd.grad` starts the engine through one function, which is wrapped here.
Before a call its graph is looked at and a forecast made; afterwards the outcome is compared. Where they
disagree, torch is right: what can no longer be told is left unknown.

A call in a training loop must cost next to nothing. So the first calls of a line are looked at in full, and
further ones for as long as that takes a small share of the time. Otherwise a call none of whose nodes has been
freed, and whose graph has the same shape as one looked at before at the same line,
is only counted: it runs over everything, as its model did. Where even walking the graph takes too large a share
of the time (tiny layers in a tight loop), the walk is left out after a while: if the counter of sequence
numbers has moved just as far since the last call and the root is of the same kind, the call is taken to be like
its model, and `assumes` says so.

Not the user's calls, and not recorded: those inside a running backward (custom Functions, hooks, re-entrant
checkpoints), and those that torch makes on fake or functional tensors while it traces.
"""

from __future__ import annotations

import sys
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.counted import Line, Model, Tally, frames_between
from graphwidget.capture.calls.hues import Hues
from graphwidget.capture.calls.outcome import (
    afterwards,
    agrees,
    boundary,
    carriers,
    executed_nodes,
    newly_freed,
    same_freed,
    told_since,
    with_grads,
)
from graphwidget.capture.calls.pending import Pending, record_of_pending
from graphwidget.capture.calls.reachable import MAX_HOLDINGS, grads_now, holdings_by_number, root_node, survey
from graphwidget.capture.calls.retention import due
from graphwidget.capture.graph.freed import Freed
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take
from graphwidget.capture.lines.provenance import BUTTON, NOWHERE, Provenance
from graphwidget.capture.owners.search import Search
from graphwidget.model import BackwardCall, Forecast, Kind, Snapshot

__all__ = ["CallLog", "Forecaster"]

Forecaster = Callable[..., Forecast]

AT_LEAST = 3  # calls of one line that are looked at in full, however alike they are
DETAILED = 16  # the same, while looking in full takes less than FULL_SHARE of the time
FULL_SHARE = 0.01
SAMPLE = 64  # after that every so many, under the same condition
WALKED = 16  # calls of one line whose graphs are walked at any price
SHARE = 0.01  # of the time, for walking graphs before calls, after that
MAX_MODELS = 256
LIKE = "not walked: as many nodes were made since the last call at this line as before call {n}"
QUICK = 15e-6  # seconds that a call takes which is recognised at a glance, about
FREE_SEARCHES = 50  # calls of a cell before which names are looked up at any price
SEARCH_SHARE = 0.02  # of the time, for looking up names after that


_NONE: array[int] = array("q")

# n, line, place key, counter before the call, number of its root, what is entered while the engine runs
_Quick = tuple[int, Line, tuple[int, int, int], int, int, Any]


class CallLog:
    """Records calls while it is installed.

    Parameters
    ----------
    forecaster
        ``analysis.engine.forecast`` or the like; None: no forecast is made.
    search
        Looks names up: gets the frames of cells that are live, and the lowest sequence number that matters (that of a
        leaf always does). Returns what it found.
    finished
        Called with each call when it is over, and the graph as it then was (None if it was only counted).
    failed
        Called with a call that raised and its exception, after `finished`.
    problem
        Called with an exception of our own; the user's call goes on.
    counted
        Called with n, place key, counter before it, highest number in its graph, thread and model of a call that was
        not even walked, instead of `finished`. None: all are told of by `finished`.
    look
        Called with n, place key and frames of cells before a few calls of each line: what is kept alive meanwhile?
    """

    def __init__(
        self,
        identity: Identity,
        provenance: Provenance,
        *,
        forecaster: Forecaster | None = None,
        search: Callable[[Sequence[FrameType], int], Search] = lambda frames, since: Search(),
        finished: Callable[[BackwardCall, Snapshot | None], None] = lambda call, graph: None,
        failed: Callable[[BackwardCall, BaseException], None] = lambda call, error: None,
        problem: Callable[[BaseException], None] = lambda error: None,
        lock: Any = None,
        counted: Callable[[int, tuple[int, int, int], int, int, int, Model], None] | None = None,
        look: Callable[[int, tuple[int, int, int], Sequence[FrameType]], None] = lambda n, spot, frames: None,
    ) -> None:
        self.identity, self.provenance = identity, provenance
        self.forecaster, self.search = forecaster, search
        self.finished, self.failed, self.problem, self.counted = finished, failed, problem, counted
        self.look = look
        self.lock = lock or threading.RLock()
        self.freed = Freed(apart_below=lambda: identity.apart_below)
        self.count = 0
        self.running: dict[int, object] = {}
        self.recent: Callable[[], dict[int, BackwardCall]] = dict  # the calls that the tracker still remembers
        self.hues = Hues()
        self.everything: Snapshot | None = None  # the last snapshot of all that has a name
        self.previous: Snapshot | None = None  # that of the last call
        self.watched_from = 0
        self._unseen = False  # whether a call since the last one may have freed what is not known
        self._home = threading.get_ident()
        self._held: OrderedDict[int, dict[str, int]] = OrderedDict()
        self._tallies: dict[tuple[int, int] | None, Tally] = {}  # of the calls of each line in this cell
        self._models: OrderedDict[tuple[int, int], Model] = OrderedDict()
        self._lines: dict[object, tuple[object, Model]] = {}  # line -> what its last counted call looked like
        self._alike: dict[int, Line] = {}  # innermost line -> what its calls have in common, once they only count
        self._spent = self._full = 0.0  # seconds of this cell, all together and for looking in full
        self._searches = 0
        self._search_time = 0.0
        self._since = perf_counter()
        self.elsewhere = NOWHERE  # where calls are made that are made in no cell

    def install(self) -> None:
        """Begin to record."""
        self.watched_from, self._home = ti.sequence_nr(), threading.get_ident()
        self.freed.unsure(self.watched_from)
        ti.wrap_engine(self._wrap)

    def uninstall(self) -> None:
        """Restore what `install` found."""
        ti.unwrap_engine()

    def begin_cell(self) -> None:
        """A new cell: look closely at its calls again."""
        self._searches, self._search_time, self._since = 0, 0.0, perf_counter()
        self._spent = self._full = 0.0
        self._tallies.clear()
        self._lines.clear()
        self._alike.clear()

    def forget_missing(self, alive: set[int]) -> None:
        """Drop what is remembered of nodes that have died."""
        self.freed.forget_missing(alive)

    @contextmanager
    def pressed(self) -> Iterator[None]:
        """Meanwhile the calls that no line of a cell makes are those of a button."""
        self.elsewhere = BUTTON
        try:
            yield
        finally:
            self.elsewhere = NOWHERE

    # ------------------------------------------------------------ around the engine

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True  # the user's traceback is about the user's code
            if torch.compiler.is_compiling():
                return original(outputs, *args, **kwargs)
            # Lines are traced here, which makes every function called dear on Python 3.10 and 3.11: few are.
            quick = self._quick(outputs, args, kwargs) if self._alike else None
            if quick is not None:
                try:
                    result = original(outputs, *args, **kwargs)
                except BaseException as error:
                    self._quietly(self._not_so_quick, quick, outputs, args, kwargs, error)
                    raise
                self._tally(quick)
                return result
            pending = self._quietly(self._before, outputs, args, kwargs)
            if pending is None:
                try:
                    return original(outputs, *args, **kwargs)
                finally:
                    self._unseen = True
            try:
                result = original(outputs, *args, **kwargs)
            except BaseException as error:
                self._quietly(self._after, pending, outputs, args, error)
                raise
            self._quietly(self._after, pending, outputs, args, None)
            return result

        return run_backward

    def _quick(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Quick | None:
        """Recognise a call that is like those before it at its line; None: look more closely."""
        lines = self.provenance.lines
        state = lines.state()
        top = state.top
        line = self._alike.get(top.base + top.line) if top is not None else None
        if line is None or top is None or line.thread != state.thread:
            return None
        paused = lines.pause() if lines.slow else None
        try:
            if paused is None and lines.lost:
                return None
            tally = line.tally
            if not (tally.seen + 1) % SAMPLE or self._spent <= SHARE * (perf_counter() - self._since):
                return None
            if not line.fits(top, sys._getframe(line.depth), outputs, args, kwargs):
                return None
            now = ti.next_number()
            with ti.quiet():
                highest = line.root_of(outputs[0], now)
            if highest < 0 or ti.in_backward() or ti.is_fake(outputs):
                return None
            with self.lock:
                if now != state.last:
                    state.close(now)
                    state.ranges.join()
                tally.seen, tally.newest = tally.seen + 1, now
                n = self.count
                self.count += 1
                self.running[n] = line
            inside = ti.nested()
            inside.__enter__()
            self._spent += QUICK
            return n, line, (line.inner, line.outer, top.iteration()), now, highest, inside
        except Exception:  # fewer frames, a view whose history cannot be read: looking closely will tell
            return None
        finally:
            if paused is not None:
                lines.unpause(paused)

    def _tally(self, quick: _Quick) -> None:
        """Note a call that was recognised: everything in it was new, so it ran over everything."""
        lines = self.provenance.lines
        paused = lines.pause() if lines.slow else None
        try:
            n, line, spot, newest, highest, inside = quick
            inside.__exit__(None, None, None)
            with self.lock:
                self.running.pop(n, None)
                if not line.keep:
                    self.freed.add_whole(n, newest, highest, line.model.distances)
                self.counted(n, spot, newest, highest, line.thread, line.model)  # type: ignore[misc]
        except Exception as error:
            self.problem(error)
        finally:
            if paused is not None:
                lines.unpause(paused)

    def _not_so_quick(
        self, quick: _Quick, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException
    ) -> None:
        """A call that was recognised, and raised after all."""
        n, _, spot, newest, highest, inside = quick
        pending = self._describe(n, args, kwargs, spot)
        pending.newest, pending.highest, pending.inside, pending.alone = newest, highest, inside, len(self.running) == 1
        self._after(pending, outputs, args, error)

    def _alike_from_now_on(
        self, pending: Pending, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> None:
        """The next call of this line may be recognised by what this one looks like."""
        depth = frames_between(sys._getframe(3), frame)
        if self.counted is None or depth is None or not Line.possible(outputs, args, kwargs):
            return
        assert pending.spot is not None and pending.glance is not None and pending.model is not None
        moved, (root, _), behind = pending.glance
        thread = threading.get_ident()
        # The wrapper is one frame above its own steps.
        tally = self._tallies[pending.spot[:2]]
        line = Line(pending.spot, thread, depth + 1, args, kwargs, root, moved, behind, pending.model, tally)
        self._alike[line.inner] = line

    def _quietly(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Run one of our own steps untraced, under the lock. Its exceptions are noted; the call goes on without it."""
        lines = self.provenance.lines
        try:
            paused = lines.pause()
            if paused is None and lines.lost:
                lines.reclaim(sys._getframe(2))
                paused = lines.pause()
            lines.boundary()
            began = perf_counter()
            try:
                with self.lock, ti.quiet():
                    return step(*arguments)
            finally:
                self._spent += perf_counter() - began
                lines.unpause(paused)
        except Exception as error:
            self.problem(error)
            return None

    def _before(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pending | None:
        """Look at the graph before the call; None: this is no call of the user's."""
        if ti.in_backward() or ti.is_fake(outputs):
            return None
        frames = self.cell_frames(sys._getframe(3))
        spot = self.provenance.lines.where(frames[0]) if frames else None
        n = self.count
        self.count += 1
        pending = self._describe(n, args, kwargs, spot)
        pending.alone = not self.running
        self.running[pending.n] = pending
        try:
            self._look(pending, outputs, args, frames)
            if not pending.walked and frames:
                self._alike_from_now_on(pending, outputs, args, kwargs, frames[0])
        except Exception as error:
            self.problem(error)
        pending.inside.__enter__()
        return pending

    def cell_frames(self, frame: FrameType | None) -> list[FrameType]:
        """Live frames of cells, innermost first."""
        book = self.provenance.book
        foreign = book.foreign
        found = []
        while frame is not None:
            if frame.f_code.co_filename not in foreign and book.scope(frame.f_code) is not None:
                found.append(frame)
            frame = frame.f_back
        return found

    def _describe(
        self, n: int, args: tuple[Any, ...], kwargs: dict[str, Any], spot: tuple[int, int, int] | None
    ) -> Pending:
        """Arguments of the engine: gradients, keep_graph, create_graph, inputs, allow_unreachable, accumulate_grad."""

        def argument(position: int, name: str, default: Any) -> Any:
            return args[position] if len(args) > position else kwargs.get(name, default)

        accumulate = bool(argument(5, "accumulate_grad", False))
        return Pending(
            n,
            spot,
            self.elsewhere if spot is None else self.provenance.place(spot),
            "backward" if accumulate else "autograd.grad",
            bool(argument(1, "keep_graph", False)),
            bool(argument(2, "create_graph", False)),
            bool(argument(4, "allow_unreachable", False)),
            bool(argument(3, "inputs", None)),
            ti.sequence_nr(),
        )

    # ------------------------------------------------------------ before

    def _look(self, pending: Pending, outputs: Any, args: tuple[Any, ...], frames: list[FrameType]) -> None:
        key = None if pending.spot is None else pending.spot[:2]
        tally = self._tallies.setdefault(key, Tally())
        seen = tally.seen = tally.seen + 1
        if due(seen) and pending.spot is not None:
            self.look(pending.n, pending.spot, frames)
        self._glance(pending, tally, outputs)
        began = perf_counter()
        at_home = threading.get_ident() == self._home
        wanted = seen <= DETAILED or not seen % SAMPLE
        familiar = at_home and seen > AT_LEAST and not (wanted and self._full < FULL_SHARE * (began - self._since))
        if familiar and seen > WALKED and self._spent > SHARE * (began - self._since):
            before = self._lines.get(key)
            if before is not None and before[0] == pending.glance:
                pending.model, pending.walked = before[1], False
                return
        nodes, numbers = survey(outputs)
        types = tuple(map(type, nodes))
        own = [number for number in numbers if number != ti.NO_SEQUENCE]
        pending.highest = max(own, default=-1)
        distances = [pending.highest - number for number in own]
        shape = (key, pending.api, pending.keep, pending.create, pending.has_inputs, tuple(distances))
        pending.shape, pending.size = hash((shape, types)), len(nodes)
        self._notice_threads(pending, at_home)
        if self._unseen and at_home:
            self._unseen = False
            self.freed.unsure(pending.newest)
        fresh = bool(own) and self.freed.none_of(own)
        model = self._models.get((pending.shape, pending.size))
        if fresh and model is not None and familiar:
            pending.model = model
            self._lines[key] = (pending.glance, model)
            return
        if fresh and seen > DETAILED:
            pending.like = model
        self._lines.pop(key, None)
        pending.distances = array("q", sorted(distances))
        del nodes
        # Numbers ascend: what was made before the first of these nodes neither is one of them nor builds on them.
        if own and not self.identity.apart_below:
            pending.since = min(own)
        search = self._search(frames, pending.since)
        pending.held = holdings_by_number(search) if search is not None else None
        pending.graph = self._take(outputs, args, search, since=pending.since)
        del search
        pending.forecast = self._foretold(pending, pending.graph)
        self._full += perf_counter() - began

    def _foretold(self, pending: Pending, graph: Snapshot) -> Forecast | None:
        if self.forecaster is None:
            return None
        return self.forecaster(
            graph,
            graph.roots,
            inputs=graph.inputs if pending.has_inputs else None,
            retain_graph=pending.keep,
            create_graph=pending.create,
            api=pending.api,
            allow_unused=pending.allow_unused,
            grad_given=True,
        )

    def _glance(self, pending: Pending, tally: Tally, outputs: Any) -> None:
        """What can be seen without a walk: how far the counter moved since the last call here, and the root."""
        root = root_node(outputs[0]) if len(outputs) == 1 else None
        if root is not None:
            pending.highest = ti.node_readers(type(root))[1](root)
            flags = (pending.api, pending.keep, pending.create, pending.has_inputs)
            pending.glance = (pending.newest - tally.newest, (type(root), flags), pending.newest - pending.highest)
        tally.newest = pending.newest

    def _notice_threads(self, pending: Pending, at_home: bool) -> None:
        """Numbers that another thread than the one that records has reached tell nodes no longer apart."""
        if not at_home:
            self.identity.tell_apart(pending.newest)
        elif pending.highest >= pending.newest:  # made by a thread of which nobody knew
            self.identity.tell_apart(pending.highest + 1)
        threads = self.provenance.lines.threads
        if len(threads) > 1:
            self.identity.tell_apart(max((state.last for state in threads if state.thread != self._home), default=0))

    def _take(
        self,
        outputs: Any,
        args: tuple[Any, ...],
        search: Search | None,
        *,
        since: int = 0,
        thorough: bool = False,
    ) -> Snapshot:
        """The graph of a call. `since`: the lowest of its nodes' numbers."""
        inputs = args[3] if len(args) > 3 and args[3] else ()
        snapshot = take(
            list(outputs),
            inputs=list(inputs) if isinstance(inputs, (tuple, list)) else [inputs],
            owners=search.holdings if search is not None else (),
            identity=self.identity,
            places=self.provenance,
            freed_by=self.freed,
            previous=self.earlier(since),
            watched_from=self.watched_from,
            thorough=thorough,
        )
        self.previous = snapshot
        return snapshot

    def earlier(self, since: int = 0) -> Snapshot | None:
        """The largest snapshot that may have nodes with this number, or a higher one."""
        known = [snapshot for snapshot in (self.previous, self.everything) if snapshot is not None]
        return max((snapshot for snapshot in known if snapshot.newest >= since), key=len, default=None)

    def _search(self, frames: list[FrameType], since: int, *, force: bool = False) -> Search | None:
        """Names of leaves and of what was made from a number on; None: looking has taken too much of the time."""
        now = perf_counter()
        self._searches += 1
        if not force and self._searches > FREE_SEARCHES and self._search_time > SEARCH_SHARE * (now - self._since):
            return None
        found = self.search(frames, since)
        self._search_time += perf_counter() - now
        return found

    # ------------------------------------------------------------ after

    def _after(self, pending: Pending, outputs: Any, args: tuple[Any, ...], error: BaseException | None) -> None:
        pending.inside.__exit__(None, None, None)
        self.running.pop(pending.n, None)
        if pending.model is not None and error is None:
            call, after = self._counted(pending, pending.model), None
        else:
            try:
                call, after = self._recorded(pending, outputs, args, error)
            except Exception as problem:  # that it happened, and how it ended, is known in any case
                self.problem(problem)
                text = None if error is None else BaseException.__str__(error)
                call = record_of_pending(pending, Snapshot(), None, error, text, False, [], self.freed)
                self._unseen, after = True, None
        self.finished(call, after)
        if error is not None:
            self.failed(call, error)

    def _counted(self, pending: Pending, model: Model) -> BackwardCall:
        """A call like an earlier one: everything in it was new, so it ran over everything."""
        if not pending.keep:
            self.freed.add_whole(pending.n, pending.newest, pending.highest, model.distances)
        call: BackwardCall = object.__new__(BackwardCall)  # `dataclasses.replace` takes ten times as long
        call.__dict__.update(model.fields)
        call.__dict__.update(n=pending.n, place=pending.place, newest_seq=pending.newest, highest_seq=pending.highest)
        call.__dict__["thread"] = threading.get_ident()
        if not pending.walked:
            call.__dict__["assumes"] = model.assumes
        return call

    def _recorded(
        self, pending: Pending, outputs: Any, args: tuple[Any, ...], error: BaseException | None
    ) -> tuple[BackwardCall, Snapshot | None]:
        before, forecast = pending.graph, pending.forecast
        if before is None:  # counted, but it raised after all; or looking failed
            before, forecast = self._take(outputs, args, None), None
            pending.size = len(before)
        text = None if error is None else BaseException.__str__(error)
        agreed = forecast is not None and pending.alone and agrees(forecast, text)
        later = None
        if not agreed:
            later = self._take(outputs, args, None, since=pending.since, thorough=error is not None)
        everything = error is None and not pending.has_inputs
        executed = executed_nodes(before, forecast if agreed else None, later, everything)
        if error is not None and agreed and text is not None and executed and not pending.keep:
            later = self._take(outputs, args, None, since=pending.since, thorough=True)
            if not same_freed(before, later, executed):
                agreed, executed = False, newly_freed(before, later)
        if error is not None and not agreed and pending.alone and later is not None:
            told = told_since(before, later)
            since = self._foretold(pending, told)
            ran = executed_nodes(told, since, None, False)
            if since is not None and agrees(since, text) and (pending.keep or same_freed(told, later, ran)):
                before, forecast, agreed, executed = told, since, True, ran
        # Among the nodes of `before` are those of other graphs that have names.
        whole = error is None and agreed and not pending.has_inputs and len(executed) == pending.size
        if whole and pending.like is not None:  # in a long loop one more graph of the same would only fill memory
            return self._counted(pending, pending.like), None
        call = record_of_pending(pending, before, forecast, error, text, agreed, executed, self.freed)
        if not pending.keep:
            self._release(pending, before, executed)
            self._unseen |= not (agreed or everything) or threading.get_ident() != self._home
        after = afterwards(before, executed, None if pending.keep else pending.n)
        after = with_grads(after, grads_now(outputs, self.identity))
        earlier = self.recent().get(call.freed_by) if call.freed_by is not None else None
        call = replace(call, order=self.hues.of_call(call, after, earlier))
        if whole:
            self._remember_model((pending.shape, pending.size), call, pending.distances)
        if call.error and call.freed_by is not None:
            call = self._with_carriers(call, before)
        return call, after

    def _remember_model(self, key: tuple[int, int], call: BackwardCall, distances: array[int]) -> None:
        """Calls of this shape need not be looked at from now on. Uids and the graph are this call's own."""
        fields = {**vars(call), "executed": _NONE, "reached_uids": (), "graph": None, "same_as": call.n}
        fields["distances"] = distances
        self._models[key] = Model(call.n, fields, distances, (*call.assumes, LIKE.format(n=call.n)))
        self._models.move_to_end(key)
        if len(self._models) > MAX_MODELS:
            self._models.popitem(last=False)

    def _release(self, pending: Pending, before: Snapshot, executed: Sequence[int]) -> None:
        inner = [i for i in executed if before.kind[i] != Kind.ACCUMULATE]
        self.freed.add(pending.n, pending.newest, ((before.uid[i], before.seq[i]) for i in inner))
        if pending.held:
            self._held[pending.n] = pending.held
            while sum(map(len, self._held.values())) > MAX_HOLDINGS and len(self._held) > 1:
                self._held.popitem(last=False)

    # ------------------------------------------------------------ who carried the old part over

    def _with_carriers(self, call: BackwardCall, graph: Snapshot) -> BackwardCall:
        """Paths that held the tensors at the border of what an earlier call freed, then and now."""
        old = self.freed.nodes_of(call.freed_by, zip(graph.uid, graph.seq, strict=True))
        earlier = self.recent().get(call.freed_by) if call.freed_by is not None else None
        if earlier is not None:
            old.update(earlier.executed)
            if not earlier.executed:
                self.recent()[earlier.n] = replace(earlier, executed=array("q", sorted(old)))
        border, new = boundary(graph, old)
        numbers = {graph.seq[i] for i in border}
        since = 0 if self.identity.apart_below else min((number for number in graph.seq if number >= 0), default=0)
        search = self._search(self.cell_frames(sys._getframe(4)), since, force=True)
        now = holdings_by_number(search) if search is not None else {}
        del search
        then = self._held.get(call.freed_by) if call.freed_by is not None else None
        above = {graph.seq[i] for i in new.difference(root.node for root in call.roots)}
        paths = carriers(numbers, above - {-1}, now if then is None else then, now)
        return replace(call, carriers=paths, boundary=tuple(graph.uid[i] for i in border))
