"""What a backward call would do: autograd's engine, simulated on a snapshot.

`forecast` answers without running anything: would the call succeed; if not, why and at which node;
which nodes would run, in which order; which saved tensors would be freed; which leaves would get a
gradient. The simulation follows the engine step for step (CPU, one thread):

1. Checks before the engine starts: every root must be a scalar or have a gradient given, then every
   root and every input must require grad.
2. Dependencies are counted over everything reachable from the roots.
3. `inputs=` narrows the run to nodes with a path to an input. `autograd.grad` captures the gradient
   in front of a non-leaf input's node; `backward(inputs=)` runs that node as well.
4. The ready node with the highest sequence number runs next (`heap.py`). It unpacks what it saved,
   and that is where a call fails (`rules.py`).
5. Each node that ran releases what it saved unless the graph is retained. So a call that fails has
   freed the saved tensors of all nodes that ran before.

What Python cannot see is stated: a forecast is unknown (`ok` is None) or lists what it assumes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from graphwidget.engine.heap import ReadyHeap
from graphwidget.engine.rules import DEFINED, MAYBE, UNDEFINED, Rules, Stop
from graphwidget.model import (
    KEEPS_MEMORY,
    Forecast,
    Kind,
    Leaf,
    Node,
    NodeFacts,
    SavedTensor,
    SlotState,
    Snapshot,
    TensorRef,
)

__all__ = ["after", "afterwards", "forecast"]

Api = Literal["backward", "autograd.grad", "grad"]

_FIRST = 2**64 - 1  # sequence number of AccumulateGrad and Error nodes: they run as soon as they are ready
_ORDINARY_SLOTS = bytes(int(s not in (SlotState.HELD, SlotState.UNSAVED)) for s in range(256))  # 1: needs a rule
_ORDINARY_KINDS = bytes(int(k != Kind.FUNCTION) for k in range(256))


def forecast(
    snapshot: Snapshot,
    roots: Sequence[TensorRef],
    *,
    inputs: Sequence[TensorRef] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    api: Api = "backward",
    allow_unused: bool = True,
    grad_given: bool = False,
) -> Forecast:
    """Simulate one backward call on `snapshot`.

    Parameters
    ----------
    snapshot
        The graph; it must hold every node that the roots reach.
    roots, inputs
        The tensors, as `snapshot.roots` or `capture` describe them.
    retain_graph
        None: the same as `create_graph`, which is torch's default.
    api
        ``"backward"``, or ``"autograd.grad"`` (``"grad"`` for short).
    allow_unused
        Only for `autograd.grad`: whether an input may get no gradient.
    grad_given
        Whether gradients for the roots are passed, so that they need not be scalars.

    Returns
    -------
    Forecast
        `ok` is None where the outcome cannot be known; `assumes` lists the assumptions.
    """
    keep = create_graph if retain_graph is None else retain_graph
    refused = _refused_at_once(roots, inputs, grad_given)
    if refused:
        return replace(refused, releases=not keep)
    run = _Run(snapshot, roots, inputs or None, create_graph, captures=api != "backward")
    stop, at = run.to_the_end()
    if stop is None and not allow_unused and inputs and api != "backward":
        stop = run.unused(inputs)
    return _result(run, stop, at, keep)


def after(snapshot: Snapshot, forecast: Forecast, n: int = -1) -> Snapshot:
    """The snapshot as it would be after that call: slots freed, gradients present, the rest unchanged.

    Parameters
    ----------
    snapshot
        The snapshot that the forecast was made for.
    n
        Number of the call, for `slot_freed_by`.
    """
    state = bytearray(snapshot.slot_state)
    freed_by = snapshot.slot_freed_by[:]
    for slots in forecast.frees.values():
        for saved in slots:
            state[saved.slot] = SlotState.FREED
            freed_by[saved.slot] = n
    if forecast.writes or forecast.may_write:
        for slot, storage in enumerate(snapshot.slot_storage):
            if state[slot] == SlotState.HELD and storage in forecast.writes:
                state[slot] = SlotState.STALE
            elif state[slot] == SlotState.HELD and storage in forecast.may_write:
                state[slot] = SlotState.UNKNOWN
    leaves = dict(snapshot.leaves)
    for node in forecast.reaches:
        if node.leaf and not node.leaf.has_grad:
            leaves[node.index] = replace(node.leaf, has_grad=True)
    facts = dict(snapshot.facts)
    if forecast.releases:
        for node in forecast.executes:
            known = facts.get(node.index, NodeFacts(inner_stale=None))
            nothing_shown = node.kind == Kind.COPY_SLICES or (node.kind == Kind.CUSTOM and not node.saved)
            if nothing_shown or known.hides_saved:
                facts[node.index] = replace(known, released=True)
    return replace(snapshot, slot_state=state, slot_freed_by=freed_by, leaves=leaves, facts=facts)


def afterwards(snapshot: Snapshot, forecast_: Forecast) -> tuple[tuple[TensorRef, Forecast], ...]:
    """What `backward()` on each root of the snapshot would do once the call of the forecast has run."""
    then = after(snapshot, forecast_)
    return tuple((root, forecast(then, [root], grad_given=True)) for root in snapshot.roots)


def _refused_at_once(
    roots: Sequence[TensorRef], inputs: Sequence[TensorRef] | None, grad_given: bool
) -> Forecast | None:
    """The checks before the engine starts, in torch's order. A call that fails here has done nothing."""
    if not grad_given:
        for root in roots:
            if root.requires_grad and (root.numel != 1 or "complex" in root.dtype):
                return Forecast(False, "not_scalar", why=f"{_called(root)} is not a scalar and no gradient is given")
    for what, tensors in (("", roots), ("input ", inputs or ())):
        for tensor in tensors:
            if not tensor.requires_grad:
                return Forecast(False, "no_grad", why=f"{what}{_called(tensor)} does not require grad")
            if tensor.problem == "no_grad_view" and what:
                continue  # an input is just not part of the graph
            if tensor.problem and tensor.problem.startswith("no_grad_view"):
                return Forecast(False, "no_grad", why=f"{what}{_called(tensor)} is a view that was made under no_grad")
            if tensor.problem == "view_modified":
                why = (
                    f"the memory of {what}{_called(tensor)}, one of several views that one operation made, was modified"
                )
                return Forecast(False, "inplace", why=f"{why} in place: torch refuses any use of it")
            if tensor.problem:
                return Forecast(None, why=f"the history of {what}{_called(tensor)} cannot be read")
    return None


def _called(tensor: TensorRef) -> str:
    return tensor.path or "a tensor"


@dataclass
class _Run:
    """One simulated call. All state is in lists by node index, and nothing is recursive."""

    snapshot: Snapshot
    roots: Sequence[TensorRef]
    inputs: Sequence[TensorRef] | None
    create_graph: bool
    captures: bool  # autograd.grad: the gradient in front of an input is returned, its node does not run
    executed: list[int] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        snapshot = self.snapshot
        self.rules = Rules(snapshot, create_graph=self.create_graph, has_inputs=self.inputs is not None)
        self.start = snapshot.edge_start.tolist()
        self.to = snapshot.edge_to.tolist()
        self.arrived = bytearray(len(snapshot))
        self.ready = ReadyHeap([seq if seq >= 0 else _FIRST for seq in snapshot.seq])
        self.starts = [root.node for root in self.roots if root.node >= 0]
        self.waiting = _dependencies(self.starts, self.start, self.to)
        self.targets = {t.node for t in self.inputs if t.node >= 0} if self.inputs is not None else set()
        self.needed = self._needed() if self.inputs is not None else None
        # (node, output number) of an input -> how defined the gradient in front of it is.
        self.captured: dict[tuple[int, int], int] = {}

    def _needed(self) -> bytearray:
        """Which nodes run: those with a path to an input, and for `backward` the inputs' own nodes."""
        before = _reversed(self.start, self.to)
        needed = bytearray(len(self.snapshot))
        stack = list(self.targets)
        seen = set(stack)
        while stack:
            for node in before[stack.pop()]:
                needed[node] = 1
                if node not in seen:
                    seen.add(node)
                    stack.append(node)
        if not self.captures:
            for node in self.targets:
                needed[node] = 1
        return needed

    def _takes_part(self, node: int) -> bool:
        return self.needed is None or bool(self.needed[node]) or node in self.targets

    def _send(self, node: int, output_nr: int, defined: int) -> None:
        if defined > self.arrived[node]:
            self.arrived[node] = defined
        if self.captures and node in self.targets:
            key = (node, output_nr)
            self.captured[key] = max(defined, self.captured.get(key, UNDEFINED))

    def _begin(self) -> None:
        """A single root is pushed at once. Several go through a node of the engine that sends gradients in order."""
        roots = [root for root in self.roots if root.node >= 0]
        if len(self.roots) == 1:
            for root in roots:
                self._send(root.node, root.output_nr, DEFINED)
                self.ready.push(root.node)
            return
        for root in roots:
            self.waiting[root.node] += 1
        for root in roots:
            self.waiting[root.node] -= 1
            if self._takes_part(root.node):
                self._send(root.node, root.output_nr, DEFINED)
                if not self.waiting[root.node]:
                    self.ready.push(root.node)

    def to_the_end(self) -> tuple[Stop | None, int]:
        """Run until the queue is empty or a node stops the call. Returns the stop (or None) and the node (or -1)."""
        self._begin()
        special = _special(self.snapshot, self.rules.doubtful | self.rules.meets_reshaped)
        needed, executed, rules, ready, arrived = self.needed, self.executed, self.rules, self.ready, self.arrived
        facts, leaves, snapshot = self.snapshot.facts, self.snapshot.leaves, self.snapshot
        while len(ready):
            node = ready.pop()
            stop = rules.hooks(node) if node in facts else None
            if stop:
                return stop, node
            if needed is not None and not needed[node]:
                continue  # captured only
            looks_closely = special[node] or rules.writes_saved_grads
            if looks_closely:
                stop = rules.run(node, arrived[node])
                if stop:
                    return stop, node
            executed.append(node)
            if snapshot.kind[node] == Kind.ACCUMULATE:
                if arrived[node] == DEFINED and leaves.get(node, _ANY_LEAF).requires_grad:
                    self.reached.append(node)
                continue
            self._hand_on(node, rules.sends(node, arrived[node]) if looks_closely else arrived[node])
        return None, -1

    def _hand_on(self, node: int, defined: int | tuple[int, ...]) -> None:
        waiting, to, arrived = self.waiting, self.to, self.arrived
        first, last = self.start[node], self.start[node + 1]
        plain = self.needed is None
        for edge in range(first, last):
            target = to[edge]
            waiting[target] -= 1
            value = defined if isinstance(defined, int) else _at(defined, edge - first)
            if plain:
                if value > arrived[target]:
                    arrived[target] = value
            elif self._takes_part(target):
                self._send(target, self.snapshot.edge_nr[edge], value)
            else:
                continue
            if not waiting[target]:
                self.ready.push(target)

    def unused(self, inputs: Sequence[TensorRef]) -> Stop | None:
        """The error of `autograd.grad`, raised after all nodes have run, for an input that got no gradient."""
        for tensor in inputs:
            got = self.captured.get((tensor.node, tensor.output_nr), UNDEFINED)
            if got == UNDEFINED:
                return Stop("unused", f"{_called(tensor)} is not used by the graph of the roots")
            if got == MAYBE:
                return Stop(None, f"whether {_called(tensor)} gets a gradient depends on Python code")
        return None


_ANY_LEAF = Leaf((), (), "", has_grad=False)


def _at(values: tuple[int, ...], position: int) -> int:
    return values[position] if position < len(values) else MAYBE


def _dependencies(starts: Iterable[int], start: list[int], to: list[int]) -> list[int]:
    """For each node, the number of edges to it from nodes reachable from `starts`. Duplicates count."""
    count = [0] * (len(start) - 1)
    stack = list(dict.fromkeys(starts))
    seen = bytearray(len(count))
    for node in stack:
        seen[node] = 1
    while stack:
        node = stack.pop()
        for target in to[start[node] : start[node + 1]]:
            count[target] += 1
            if not seen[target]:
                seen[target] = 1
                stack.append(target)
    return count


def _reversed(start: list[int], to: list[int]) -> list[list[int]]:
    """For each node, the nodes with an edge to it."""
    before: list[list[int]] = [[] for _ in range(len(start) - 1)]
    for node in range(len(before)):
        for target in to[start[node] : start[node + 1]]:
            before[target].append(node)
    return before


def _special(snapshot: Snapshot, doubtful: Iterable[int]) -> bytearray:
    """1 for every node at which something other than unpacking and passing gradients on can happen."""
    special = bytearray(snapshot.kind.translate(_ORDINARY_KINDS))
    for node in (*snapshot.facts, *doubtful):
        special[node] = 1
    states = snapshot.slot_state.translate(_ORDINARY_SLOTS)
    if 1 in states:
        start = snapshot.slot_start
        for node in range(len(snapshot)):
            if 1 in states[start[node] : start[node + 1]]:
                special[node] = 1
    return special


def _result(run: _Run, stop: Stop | None, at: int, keep: bool) -> Forecast:
    snapshot = run.snapshot
    node = snapshot.node(at) if at >= 0 else None
    frees = {} if keep else _released(snapshot, run.executed)
    freed, returned = _bytes(snapshot, {saved.slot for slots in frees.values() for saved in slots})
    failed = stop is not None and stop.reason is not None
    unknown = stop is not None and stop.reason is None
    return Forecast(
        ok=None if unknown else not failed,
        reason=stop.reason if stop else None,
        fails_at=node if failed else None,
        fails_slot=SavedTensor(snapshot, stop.slot) if failed and stop and stop.slot >= 0 else None,
        unknown_at=node if unknown else None,
        why=stop.why if stop else "",
        assumes=tuple(run.rules.assumes),
        executes=tuple(map(snapshot.node, run.executed)),
        frees=frees,
        freed_bytes=freed,
        returned_bytes=returned,
        # Gradients returned by autograd.grad change no leaf.
        reaches=tuple(map(snapshot.node, run.reached)),
        releases=not keep,
        writes=run.rules.written(surely=True),
        may_write=run.rules.written(surely=False),
    )


def _released(snapshot: Snapshot, executed: Iterable[int]) -> Mapping[Node, tuple[SavedTensor, ...]]:
    """The saved tensors that the executed nodes release."""
    states, start = snapshot.slot_state, snapshot.slot_start
    found = {}
    for node in executed:
        slots = tuple(SavedTensor(snapshot, s) for s in range(start[node], start[node + 1]) if KEEPS_MEMORY[states[s]])
        if slots:
            found[snapshot.node(node)] = slots
    return found


def _bytes(snapshot: Snapshot, slots: set[int]) -> tuple[int, int]:
    """(bytes behind `slots`, once per storage; those of them that are freed, since nothing else owns the storage)."""
    unowned = sum(snapshot.slot_bytes[slot] for slot in slots if snapshot.slot_storage[slot] < 0)
    mine = {snapshot.slot_storage[slot] for slot in slots} - {-1}
    kept = {leaf.grad_storage for leaf in snapshot.leaves.values()} if mine else set()
    if mine and len(slots) < len(snapshot.slot_state):
        for slot, (state, storage) in enumerate(zip(snapshot.slot_state, snapshot.slot_storage, strict=True)):
            if storage in mine and KEEPS_MEMORY[state] and slot not in slots:
                kept.add(storage)
    storages = snapshot.storages
    freed = sum(storages.bytes[i] for i in mine)
    returned = sum(storages.bytes[i] for i in mine if i not in kept and i not in storages.owners)
    return unowned + freed, unowned + returned
