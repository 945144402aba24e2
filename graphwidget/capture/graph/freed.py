"""Which call freed what a node had saved: remembered for every node that is alive, in bounded memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

__all__ = ["Freed"]

CLOSE = 16  # the last calls, whose nodes' numbers are known


class Freed:
    """Who freed a node: the first call that did, should several have run over it.

    A training loop frees the graph of each iteration, a thousand times over, and all of it dies at once.
    Such a call is noted as its newest sequence number and the distances of the others from it, which
    all calls of that shape share. Whether a node is one of them is asked when it is met (`of`), if it ever is.

    Parameters
    ----------
    by_uid
        What is known already: uid -> n of the call.
    apart_below
        Lower sequence numbers may be of several threads: they do not tell which node it is.
    limit
        How many calls noted by numbers to keep before the oldest are dropped: 28 bytes each.
    """

    def __init__(
        self, by_uid: Mapping[int, int] | None = None, apart_below: Callable[[], int] = int, limit: int = 400_000
    ) -> None:
        self.by_uid = dict(by_uid or {})
        self.apart_below, self.limit = apart_below, limit
        self.unsure_below = 0  # nodes with lower numbers may have been freed by something that was not seen in detail
        # The calls noted by numbers, in order: where the counter stood, highest number, n, and which distances.
        self._counter, self._highest, self._n, self._shape = array("q"), array("q"), array("q"), array("i")
        self._shapes: list[array[int]] = []  # ascending distances from the highest number
        self._shape_at: dict[int, int] = {}  # id of one of them -> where it stands
        # Where the counter stood at the last calls, the highest number that they freed, and the distances.
        self._last: deque[tuple[int, int, Sequence[int]]] = deque(maxlen=CLOSE)

    def __bool__(self) -> bool:
        """Whether anything was freed."""
        return bool(self.by_uid or self._n)

    def of(self, uid: int, number: int) -> int | None:
        """The call that freed the node with this uid and sequence number; None: none did, or nobody knows."""
        n = self.by_uid.get(uid)
        return self._by_number(number) if n is None and self._n else n

    def nodes_of(self, n: int | None, met: Iterable[tuple[int, int]]) -> set[int]:
        """Uids of the nodes that call `n` freed, as far as they are known: also among those met, by (uid, number)."""
        known = {uid for uid, by in self.by_uid.items() if by == n}
        return known.union(uid for uid, number in met if self.of(uid, number) == n)

    def none_of(self, numbers: Sequence[int]) -> bool:
        """Whether it is certain that no node with these numbers has been freed."""
        lowest = min(numbers)
        if lowest < max(self.unsure_below, self.apart_below()):
            return False
        for counter, highest, distances in reversed(self._last):
            if counter <= lowest:  # before any of them was made
                return True
            if highest >= lowest and not {highest - number for number in numbers}.isdisjoint(distances):
                return False
        return len(self._last) < CLOSE

    def add(self, n: int, counter: int, nodes: Iterable[tuple[int, int]]) -> None:
        """Call `n`, at which the counter of numbers stood there, released these nodes: uids and numbers."""
        numbers = []
        for uid, number in nodes:
            numbers.append(number)
            if uid not in self.by_uid:
                earlier = self._by_number(number)
                self.by_uid[uid] = n if earlier is None else earlier
        highest = max(numbers, default=-1)
        self._last.append((counter, highest, array("q", [highest - number for number in numbers])))

    def add_whole(self, n: int, counter: int, highest: int, distances: array[int]) -> None:
        """The same for nodes with the numbers ``highest - distance``, of which `none_of` had been freed."""
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
        """Nodes with lower numbers may have been freed by something that was not seen in detail."""
        self.unsure_below = max(self.unsure_below, below)

    def _by_number(self, number: int) -> int | None:
        """The call noted by numbers that released the node with this number: one of the first since it was made."""
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
        """Drop what is known of nodes that have died."""
        self.by_uid = {uid: n for uid, n in self.by_uid.items() if uid in alive}
