"""Which hue and stroke style a root has: a small number that it keeps for life, dead or alive, and its calls with it.

It is given when a call on the root is over, or at the end of the cell that made it; never by a picture, so that what is
drawn, and when, changes nothing. A name that is computed anew looks as it did before; different names differ.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count
from typing import Any

from graphwidget.model import BackwardCall, Snapshot, TensorRef

__all__ = ["Hues", "key_of"]

Key = tuple[int, int]  # uid of a root's node, number of the output
MAX_KNOWN = 20_000  # roots, and names, that are remembered


class Hues:
    """Gives out orders: 0 is the first hue."""

    def __init__(self) -> None:
        self._of: dict[Key, int] = {}
        self._names: dict[str, int] = {}  # what a name looks like, unless that is taken
        self._recent: dict[str, Key] = {}  # names that live, or were called since the last end of a cell

    def of_call(self, call: BackwardCall, graph: Snapshot | None, earlier: BackwardCall | None) -> int:
        """The order of a call that is over: that of its first root; -1: it has none.

        Parameters
        ----------
        graph
            The graph that the roots of the call stand in; None: it was only counted.
        earlier
            The call that freed what this one needed. Where both are of one name, this one takes another look.
        """
        root = next(iter(call.roots), None)
        if root is None:
            return -1
        if graph is None or not 0 <= root.node < len(graph):
            return self._names.get(root.path or "", -1)
        key, name = key_of(graph, root)
        avoid = {earlier.order} if earlier is not None else set()
        if key not in self._of:
            # What this root builds on is no root any more: its look is free.
            known = {one: at for one, at in self._recent.items() if one != name}
            below = _below(graph, [ref.node for ref in call.roots if ref.node >= 0]) if known else set()
            others = {one: self._of[at] for one, at in known.items() if at[0] not in below and at in self._of}
            self._of[key] = self._free(name, others, avoid)
            if not avoid:
                self._names.setdefault(name, self._of[key])
            _bound(self._of)
        self._recent[name] = key
        return self._of[key]

    def settle(self, graph: Snapshot) -> None:
        """A cell has ended: from now on its roots look as they do."""
        roots = [key_of(graph, ref) for ref in graph.roots if ref.node >= 0]
        orders = self.look(roots)
        for (key, name), order in zip(roots, orders):
            self._of[key] = order
            self._names.setdefault(name, order)
        self._recent = {name: key for key, name in roots}
        _bound(self._of)
        _bound(self._names)

    def look(self, roots: Sequence[tuple[Key, str]]) -> list[int]:
        """Orders of the roots of one picture, keys and names: known ones as they are, others so that names differ."""
        shown = {name: self._of[key] for key, name in roots if key in self._of}
        orders = []
        for key, name in roots:
            order = self._of.get(key)
            if order is None:
                order = shown[name] = self._free(name, shown)
            orders.append(order)
        return orders

    def _free(self, name: str, others: dict[str, int], avoid: Collection[int] = ()) -> int:
        taken = {order for other, order in others.items() if other != name} | set(avoid)
        wanted = self._names.get(name)
        if wanted is not None and wanted not in taken:
            return wanted
        return next(order for order in count() if order not in taken)


def key_of(graph: Snapshot, ref: TensorRef) -> tuple[Key, str]:
    """What a root is known by, and its name; one without a name is called by its node."""
    key = (graph.uid[ref.node], ref.output_nr)
    return key, ref.path or f"#{key[0]}.{key[1]}"


def _below(graph: Snapshot, nodes: Sequence[int]) -> set[int]:
    """Uids of what some nodes lead to, without their own."""
    found: set[int] = set()
    work = list(nodes)
    for node in work:  # grows while it is read
        for after in graph.next(node):
            if after not in found:
                found.add(after)
                work.append(after)
    return {graph.uid[node] for node in found}


def _bound(known: dict[Any, int]) -> None:
    """Forget the oldest."""
    while len(known) > MAX_KNOWN:
        del known[next(iter(known))]
