"""Gives each root a hue and a stroke style, as one small number: its order. The calls on a root have its order, too.

A root keeps its order for life, alive or dead. It gets one when a call on it is over, or when the cell that computed it
ends. Drawing never assigns one, so it does not matter what is drawn, or when. A name that is computed again keeps its
order; different names have different ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count
from typing import Any

from graphwidget.model import BackwardCall, Snapshot, TensorRef

__all__ = ["Hues", "key_of"]

Key = tuple[int, int]  # uid of a root's node, number of the output
MAX_KNOWN = 20_000  # roots remembered; also names remembered


class Hues:
    """Assigns orders: 0 is the first hue."""

    def __init__(self) -> None:
        self._orders: dict[Key, int] = {}
        self._names: dict[str, int] = {}  # the order that a name gets unless another root has it
        self._recent: dict[str, Key] = {}  # names of roots that live, or were called since the last cell ended

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
            # Nodes below this root are no roots any more: their orders are free.
            known = {one: at for one, at in self._recent.items() if one != name}
            below = _below(graph, [ref.node for ref in call.roots if ref.node >= 0]) if known else set()
            others = {one: self._orders[at] for one, at in known.items() if at[0] not in below and at in self._orders}
            self._orders[key] = self._free(name, others, avoid)
            if not avoid:
                self._names.setdefault(name, self._orders[key])
            _drop_oldest(self._orders)
        self._recent[name] = key
        return self._orders[key]

    def settle(self, graph: Snapshot) -> None:
        """Fix the orders of the roots of a cell that has ended."""
        roots = [key_of(graph, ref) for ref in graph.roots if ref.node >= 0]
        orders = self.look(roots)
        for (key, name), order in zip(roots, orders):
            self._orders[key] = order
            self._names.setdefault(name, order)
        self._recent = {name: key for key, name in roots}
        _drop_oldest(self._orders)
        _drop_oldest(self._names)

    def look(self, roots: Sequence[tuple[Key, str]]) -> list[int]:
        """Return orders for the roots (key, name) of one picture: the known ones, and free ones for new names."""
        shown = {name: self._orders[key] for key, name in roots if key in self._orders}
        orders = []
        for key, name in roots:
            order = self._orders.get(key)
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
