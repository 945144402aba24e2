"""One call of the engine, simulated on a snapshot: which nodes run, in which order, and where it stops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from graphwidget.engine.heap import ReadyHeap
from graphwidget.engine.rules import DEFINED, MAYBE, UNDEFINED, Rules, Stop
from graphwidget.model import Kind, Leaf, SlotState, Snapshot, TensorRef

__all__ = ["Run", "at", "called"]

_FIRST = 2**64 - 1  # sequence number of AccumulateGrad and Error nodes: they run as soon as they are ready
_ORDINARY_SLOTS = bytes(int(s not in (SlotState.HELD, SlotState.UNSAVED)) for s in range(256))  # 1: needs a rule
_ORDINARY_KINDS = bytes(int(k != Kind.FUNCTION) for k in range(256))


def called(tensor: TensorRef) -> str:
    """The name of a tensor in a sentence."""
    return tensor.path or "a tensor"


@dataclass
class Run:
    """One simulated call. All state is in lists by node index, and nothing is recursive."""

    snapshot: Snapshot
    roots: Sequence[TensorRef]
    inputs: Sequence[TensorRef] | None
    create_graph: bool
    captures: bool  # autograd.grad: the gradient in front of an input is returned, its node does not run
    executed: list[int] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)
    # Nodes of inputs that do not run, and how many nodes had run when the gradient in front of each was captured.
    passed: list[tuple[int, int]] = field(default_factory=list)

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

    def takes_part(self, node: int) -> bool:
        """Whether gradients are sent to a node."""
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
            if self.takes_part(root.node):
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
                self.passed.append((node, len(executed)))
                continue
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
            self.hand_on(node, rules.sends(node, arrived[node]) if looks_closely else arrived[node])
        return None, -1

    def hand_on(self, node: int, defined: int | tuple[int, ...]) -> None:
        """A node has run: its gradients, defined so, go to the nodes behind its edges."""
        waiting, to, arrived = self.waiting, self.to, self.arrived
        first, last = self.start[node], self.start[node + 1]
        plain = self.needed is None
        for edge in range(first, last):
            target = to[edge]
            waiting[target] -= 1
            value = defined if isinstance(defined, int) else at(defined, edge - first)
            if plain:
                if value > arrived[target]:
                    arrived[target] = value
            elif self.takes_part(target):
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
                return Stop("unused", f"{called(tensor)} is not used by the graph of the roots")
            if got == MAYBE:
                return Stop(None, f"whether {called(tensor)} gets a gradient depends on Python code")
        return None


_ANY_LEAF = Leaf((), (), "", has_grad=False)


def at(defined: int | tuple[int, ...], position: int) -> int:
    """How defined the gradient is that a node sends along its edge at `position`."""
    if isinstance(defined, int):
        return defined
    return defined[position] if position < len(defined) else MAYBE


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
