"""Gives each root a hue and a stroke style, as one small number: its order. The calls on a root have its order, too.

A root keeps its order for life, alive or dead. It gets one when a call on it is over, or when the cell that computed it
ends. Drawing never assigns one, so it does not matter what is drawn, or when. A name that is computed again keeps its
order; different names that are seen together have different ones.

Seen together are the roots of the present: those that one cell made or called, and older ones that share nodes with
them. Roots of older graphs do not count, so in each section of a notebook the first two hues are free again.

One thing is worth more than a hue for life: a failing pair has the first two. Where others had them, these and the pair
change places when the call fails, in all pictures, also in those of the past.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from graphwidget.model import BackwardCall, Kind, Snapshot, TensorRef

__all__ = ["Hues", "key_of"]

Key = tuple[int, int]  # uid of a root's node, number of the output
MAX_KNOWN = 20_000  # roots remembered; also names remembered
# In graphs of more nodes it is not looked up whether roots share some: then they do not count as seen together.
MAX_SHARED = 20_000


class Hues:
    """Assigns orders: 0 is the first hue."""

    def __init__(self) -> None:
        self._orders: dict[Key, int] = {}
        self._made: dict[Key, int] = {}  # the run of the cell that made each of these roots, -1: unknown
        self._names: dict[str, int] = {}  # the order that a name gets unless another root has it
        self._present: dict[str, Key] = {}  # names of the present's roots when the last cell ended, and of called ones
        self._nodes: set[int] = set()  # uids of their nodes, without the leaves
        self._run = -1  # the run of a cell that made or called them

    def of_call(self, call: BackwardCall, graph: Snapshot | None, earlier: BackwardCall | None) -> int:
        """Return the order of a finished call, which is the order of its first root; -1 if it has no root.

        Parameters
        ----------
        graph
            The graph that contains the roots of the call; None: the call was only counted.
        earlier
            The call that freed what this one needed. If both roots have the same name, this one gets another order.
        """
        root = next(iter(call.roots), None)
        if root is None:
            return -1
        if graph is None or not 0 <= root.node < len(graph):
            return self._names.get(root.path or "", -1)
        key, name = key_of(graph, root)
        avoid = {earlier.order} if earlier is not None else set()
        if key not in self._orders:
            self._begin(graph, root)
            # Nodes below this root are no roots any more: their orders are free.
            known = {one: at for one, at in self._present.items() if one != name}
            tops = [ref.node for ref in call.roots if ref.node >= 0]
            below = _computed(graph, tops) - {graph.uid[node] for node in tops} if known else set()
            others = {one: self._orders[at] for one, at in known.items() if at[0] not in below and at in self._orders}
            self._orders[key] = self._free(name, others, avoid)
            self._made[key] = _run_of(graph, root)
            if not avoid:
                self._names.setdefault(name, self._orders[key])
            _drop_oldest(self._orders)
            _drop_oldest(self._made)
        self._present[name] = key
        return self._orders[key]

    def first_two(self, older: BackwardCall, newer: BackwardCall) -> Mapping[int, int]:
        """Give a failing pair the first two hues; return which orders change: old to new."""
        pair = [older.order, newer.order]
        if min(pair) < 0:
            return {}
        free = [order for order in (0, 1) if order not in pair]
        swapped: dict[int, int] = {}
        for order, first in zip((one for one in dict.fromkeys(pair) if one > 1), free):
            swapped |= {order: first, first: order}
        if swapped:
            since = self._since()
            for key, order in self._orders.items():
                if order in swapped and self._made.get(key, -1) >= since:
                    self._orders[key] = swapped[order]
            for name in self._present.keys() & self._names.keys():
                self._names[name] = swapped.get(self._names[name], self._names[name])
        return swapped

    def is_present(self, call: BackwardCall) -> bool:
        """Whether the root of a call belongs to the present: a cell of the present made it."""
        run = call.place.run
        if call.graph is not None and call.roots and 0 <= call.roots[0].node < len(call.graph):
            run = self._made.get(key_of(call.graph, call.roots[0])[0], run)
        return run is not None and run >= self._since()

    def _since(self) -> int:
        """The first run of a cell that made a root of the present."""
        return min((self._made[key] for key in self._present.values() if key in self._made), default=self._run)

    def _begin(self, graph: Snapshot, root: TensorRef) -> None:
        """A root was called: if a later cell made it, and it shares no node with the present, a new one begins."""
        run = _run_of(graph, root)
        if run <= self._run:
            return
        self._run = run
        if len(graph) > MAX_SHARED or self._nodes.isdisjoint(graph.uid):
            self._present.clear()

    def settle(self, graph: Snapshot) -> None:
        """Fix the orders of the roots of a cell that has ended."""
        refs = [ref for ref in graph.roots if ref.node >= 0]
        for ref, order in zip(refs, self.look(graph, refs)):
            key, name = key_of(graph, ref)
            self._orders[key] = order
            self._made.setdefault(key, _run_of(graph, ref))
            self._names.setdefault(name, order)
        present = self._seen_together(graph, refs)
        self._run = max([self._run, *(_run_of(graph, ref) for ref in present)])
        self._present = {name: key for key, name in (key_of(graph, ref) for ref in present)}
        self._nodes = _computed(graph, [ref.node for ref in present]) if len(graph) <= MAX_SHARED else set()
        _drop_oldest(self._orders)
        _drop_oldest(self._made)
        _drop_oldest(self._names)

    @classmethod
    def of_calls(cls, calls: Iterable[BackwardCall]) -> Hues:
        """Return the hues that calls have which were recorded elsewhere."""
        hues = cls()
        for call in calls:
            if call.order >= 0 and call.graph is not None and call.roots and call.roots[0].node >= 0:
                key, name = key_of(call.graph, call.roots[0])
                hues._orders[key] = hues._names[name] = call.order
        return hues

    def look(self, graph: Snapshot, refs: Sequence[TensorRef]) -> list[int]:
        """Return orders for roots of one picture: the known ones, and free ones for new names."""
        keys = [key_of(graph, ref) for ref in refs]
        if all(key in self._orders for key, _ in keys):
            return [self._orders[key] for key, _ in keys]
        together = {key_of(graph, ref) for ref in self._seen_together(graph, refs)}
        shown = {name: self._orders[key] for key, name in keys if key in self._orders and (key, name) in together}
        orders = [self._orders.get(key, -1) for key, _ in keys]
        # Names that have an order keep it; then as the program made them.
        for i in sorted(range(len(refs)), key=lambda i: (keys[i][1] not in self._names, graph.seq[refs[i].node])):
            name = keys[i][1]
            if orders[i] < 0:
                orders[i] = shown[name] = self._free(name, shown)
        return orders

    def _seen_together(self, graph: Snapshot, refs: Sequence[TensorRef]) -> list[TensorRef]:
        """Return the roots that the newest cell made or called, and those that share nodes with them."""
        runs = [_run_of(graph, ref) for ref in refs]
        newest = max([self._run, *runs])
        called = set(self._present.values()) if newest == self._run else set()
        own = [ref for ref, run in zip(refs, runs) if run == newest or key_of(graph, ref)[0] in called]
        others = [ref for ref in refs if ref not in own]
        if not others or len(graph) > MAX_SHARED:
            return own
        uids = _computed(graph, [ref.node for ref in own])
        return own + [ref for ref in others if not uids.isdisjoint(_computed(graph, [ref.node]))]

    def _free(self, name: str, others: dict[str, int], avoid: Collection[int] = ()) -> int:
        taken = {order for other, order in others.items() if other != name} | set(avoid)
        wanted = self._names.get(name)
        if wanted is not None and wanted not in taken:
            return wanted
        return next(order for order in count() if order not in taken)


def _run_of(graph: Snapshot, ref: TensorRef) -> int:
    """The run of the cell that made a root; -1: unknown."""
    place = graph.place_of(ref.node) if ref.node >= 0 else None
    return -1 if place is None or place.run is None else place.run


def _computed(graph: Snapshot, nodes: Iterable[int]) -> set[int]:
    """Return the uids of some nodes and all below them, without the leaves."""
    work = [node for node in dict.fromkeys(nodes) if node >= 0]
    found = set(work)
    for node in work:  # grows while it is read
        for after in graph.next(node):
            if after not in found and graph.kind[after] != Kind.ACCUMULATE:
                found.add(after)
                work.append(after)
    return {graph.uid[node] for node in found}


def key_of(graph: Snapshot, ref: TensorRef) -> tuple[Key, str]:
    """Return the key of a root and its name, which is made from the key if the root has no path."""
    key = (graph.uid[ref.node], ref.output_nr)
    return key, ref.path or f"#{key[0]}.{key[1]}"


def _below(graph: Snapshot, nodes: Sequence[int]) -> set[int]:
    """Return the uids of all nodes below some nodes, without these."""
    found: set[int] = set()
    work = list(nodes)
    for node in work:  # grows while it is read
        for after in graph.next(node):
            if after not in found:
                found.add(after)
                work.append(after)
    return {graph.uid[node] for node in found}


def _drop_oldest(known: dict[Any, int]) -> None:
    """Remove the oldest entries above the limit."""
    while len(known) > MAX_KNOWN:
        del known[next(iter(known))]
