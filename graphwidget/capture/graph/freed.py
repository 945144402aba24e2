"""Which call freed the saved tensors of a node: remembered for every living node, in bounded memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

__all__ = ["Freed"]

CLOSE = 16  # how many recent calls keep their freed numbers, and how many calls are searched for a number


class Freed:
    """Which call freed a node: if several ran the node, the first of them.

    A training loop frees the graph of each iteration, a thousand times over, and each graph dies at once.
    Such a call is stored *by numbers*: the highest sequence number that it freed, and the distances of the
    others from it. Calls of one shape share the distances. `of` searches them when a node is asked about.

    Parameters
    ----------
    by_uid
        Nodes that are known to be freed: uid -> n of the call.
    apart_below
        Lower sequence numbers may come from several threads, so they do not identify a node.
    limit
        How many calls to store by numbers (28 bytes each) before the oldest are dropped.
    """

    def __init__(
        self, by_uid: Mapping[int, int] | None = None, apart_below: Callable[[], int] = int, limit: int = 400_000
    ) -> None:
        self.by_uid = dict(by_uid or {})
        self.apart_below, self.limit = apart_below, limit
        self.unsure_below = 0  # nodes with lower numbers may have been freed by a call that was not recorded in detail
        # The calls stored by numbers, in order: the sequence counter, the highest number, n, and index into `_shapes`.
        self._counter, self._highest, self._n, self._shape = array("q"), array("q"), array("q"), array("i")
        self._shapes: list[array[int]] = []  # ascending distances from the highest number
        self._shape_at: dict[int, int] = {}  # id of an array in `_shapes` -> its index
        # Of the last calls: the sequence counter, the highest number that they freed, and the distances.
        self._last: deque[tuple[int, int, Sequence[int]]] = deque(maxlen=CLOSE)

    def __bool__(self) -> bool:
        """Whether anything was freed."""
        return bool(self.by_uid or self._n)

    def of(self, uid: int, number: int) -> int | None:
        """The call (n) that freed the node with this uid and sequence number. None: no call did, or unknown."""
        n = self.by_uid.get(uid)
        return self._by_number(number) if n is None and self._n else n

    def nodes_of(self, n: int | None, met: Iterable[tuple[int, int]]) -> set[int]:
        """Uids of the nodes that call `n` freed: those known by uid, and those among `met`, given as (uid, number)."""
        known = {uid for uid, by in self.by_uid.items() if by == n}
        return known.union(uid for uid, number in met if self.of(uid, number) == n)

    def none_of(self, numbers: Sequence[int]) -> bool:
        """Whether it is certain that no node with these numbers has been freed."""
        lowest = min(numbers)
        if lowest < max(self.unsure_below, self.apart_below()):
            return False
        for counter, highest, distances in reversed(self._last):
            if counter <= lowest:  # that call came before any of these nodes was made
                return True
            if highest >= lowest and not {highest - number for number in numbers}.isdisjoint(distances):
                return False
        return len(self._last) < CLOSE

    def add(self, n: int, counter: int, nodes: Iterable[tuple[int, int]]) -> None:
        """Record that call `n` freed `nodes`, given as (uid, number), when the sequence counter stood at `counter`."""
        numbers = []
        for uid, number in nodes:
            numbers.append(number)
            if uid not in self.by_uid:
                earlier = self._by_number(number)
                self.by_uid[uid] = n if earlier is None else earlier
        highest = max(numbers, default=-1)
        self._last.append((counter, highest, array("q", [highest - number for number in numbers])))

    def add_whole(self, n: int, counter: int, highest: int, distances: array[int]) -> None:
        """Record that call `n` freed the nodes ``highest - distance``. Only if `none_of` holds for their numbers."""
        if not distances:
            return
        shape = self._shape_at.get(id(distances))
        if shape is None:
            shape = self._shape_at[id(distances)] = len(self._shapes)
            self._shapes.append(distances)
        self._counter.append(counter)
        self._highest.append(highest)
        self._n.append(n)
        self._shape.append(shape)
        self._last.append((counter, highest, distances))
        if len(self._n) > self.limit:
            self._drop(self.limit // 4)

    def _drop(self, count: int) -> None:
        del self._counter[:count], self._highest[:count], self._n[:count], self._shape[:count]
        used = {old: new for new, old in enumerate(sorted(set(self._shape)))}
        self._shapes = [self._shapes[old] for old in used]
        self._shape = array("i", map(used.__getitem__, self._shape))
        self._shape_at = {id(distances): at for at, distances in enumerate(self._shapes)}

    def unsure(self, below: int) -> None:
        """Record that nodes with lower numbers may have been freed by a call that was not recorded in detail."""
        self.unsure_below = max(self.unsure_below, below)

    def _by_number(self, number: int) -> int | None:
        """The call stored by numbers that freed this node, among the first `CLOSE` calls since it was made."""
        if number < self.apart_below():
            return None
        first = bisect_right(self._counter, number)
        for at in range(first, min(first + CLOSE, len(self._n))):
            distances, distance = self._shapes[self._shape[at]], self._highest[at] - number
            found = bisect_left(distances, distance)
            if found < len(distances) and distances[found] == distance:
                return self._n[at]
        return None

    def forget_missing(self, alive: Collection[int]) -> None:
        """Drop the entries of nodes that have died."""
        self.by_uid = {uid: n for uid, n in self.by_uid.items() if uid in alive}
