"""The engine's queue of ready nodes.

Autograd takes the ready node with the highest sequence number. Numbers are equal for nodes made in
different threads and for all AccumulateGrad nodes. Ties are then resolved by the heap of libstdc++,
which is neither first-in-first-out nor last-in-first-out. This is that heap, step for step, so that
ties are resolved the same way (on Linux; other standard libraries have another heap).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ReadyHeap"]


class ReadyHeap:
    """`std::priority_queue` of node indices, the greatest `keys[index]` first.

    Parameters
    ----------
    keys
        Priority of each node.
    """

    __slots__ = ("_items", "_keys")

    def __init__(self, keys: Sequence[int]) -> None:
        self._keys = keys
        self._items: list[int] = []

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: int) -> None:
        """`std::push_heap`: append, then climb while the parent is smaller."""
        self._items.append(item)
        self._climb(len(self._items) - 1, item)

    def pop(self) -> int:
        """`std::pop_heap`: move a hole from the top down to the leaves, then let the last item climb from there."""
        items, keys = self._items, self._keys
        top = items[0]
        last = items.pop()
        size = len(items)
        if not size:
            return top
        hole = 0
        while True:
            child = 2 * hole + 2
            if child >= size:
                break
            if keys[items[child]] < keys[items[child - 1]]:
                child -= 1
            items[hole] = items[child]
            hole = child
        if child == size:  # a left child without a right one
            items[hole] = items[child - 1]
            hole = child - 1
        self._climb(hole, last)
        return top

    def _climb(self, hole: int, item: int) -> None:
        items, keys = self._items, self._keys
        key = keys[item]
        while hole:
            parent = (hole - 1) >> 1
            if not keys[items[parent]] < key:
                break
            items[hole] = items[parent]
            hole = parent
        items[hole] = item
