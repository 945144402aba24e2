"""Which call freed what a node had saved: remembered for every node that is alive, in bounded memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping

__all__ = ["Freed"]


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
        How many calls noted by numbers to keep before the oldest are dropped: 20 bytes each.
    """

    def __init__(
        self, by_uid: Mapping[int, int] | None = None, apart_below: Callable[[], int] = int, limit: int = 400_000
    ) -> None:
        self.by_uid = dict(by_uid or {})
        self.apart_below, self.limit = apart_below, limit
        # Sequence numbers above this have never been freed.
        self.newest = -1
        # The calls noted by numbers: highest number, n, and which distances. The ranges ascend and do not overlap: each
        # is above everything freed before.
        self._highest, self._n, self._shape = array("q"), array("q"), array("i")
        self._shapes: list[array[int]] = []  # ascending distances from the highest number
        self._shape_at: dict[int, int] = {}  # id of one of them -> where it stands

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

    def add(self, n: int, uids: Iterable[int], numbers: Iterable[int]) -> None:
        """Call `n` released these nodes."""
        by_uid = self.by_uid
        for uid, number in zip(uids, numbers, strict=True):
            if uid not in by_uid:
                earlier = self._by_number(number)
                by_uid[uid] = n if earlier is None else earlier
                self.newest = max(self.newest, number)

    def add_whole(self, n: int, highest: int, distances: array[int]) -> None:
        """Call `n` released nodes with the sequence numbers ``highest - distance``, all above `newest`."""
        if not distances:
            return
        shape = self._shape_at.get(id(distances))
        if shape is None:
            shape = self._shape_at[id(distances)] = len(self._shapes)
            self._shapes.append(distances)
        self._highest.append(highest)
        self._n.append(n)
        self._shape.append(shape)
        self.newest = max(self.newest, highest)
        if len(self._n) > self.limit:
            self._drop(self.limit // 4)

    def _drop(self, count: int) -> None:
        del self._highest[:count], self._n[:count], self._shape[:count]
        used = {old: new for new, old in enumerate(sorted(set(self._shape)))}
        self._shapes = [self._shapes[old] for old in used]
        self._shape = array("i", map(used.__getitem__, self._shape))
        self._shape_at = {id(distances): at for at, distances in enumerate(self._shapes)}

    def above(self, number: int) -> None:
        """Nodes up to `number` may have been freed by something that was not recorded in detail."""
        self.newest = max(self.newest, number)

    def _by_number(self, number: int) -> int | None:
        """The call noted by numbers that released the node with this sequence number."""
        at = bisect_left(self._highest, number)
        if at == len(self._highest) or number < self.apart_below():
            return None
        distances, distance = self._shapes[self._shape[at]], self._highest[at] - number
        found = bisect_left(distances, distance)
        return self._n[at] if found < len(distances) and distances[found] == distance else None

    def forget_missing(self, alive: Collection[int]) -> None:
        """Drop what is known of nodes that have died."""
        self.by_uid = {uid: n for uid, n in self.by_uid.items() if uid in alive}
