"""Which call freed what a node had saved: remembered for every node that is alive, in bounded memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping

__all__ = ["Freed"]


class Freed(Mapping[int, int]):
    """uid -> n of the call that freed the node; the first one, should several have run over it.

    A training loop frees the graph of each iteration, a thousand times over, and all of it dies at once.
    Such a call is noted as its newest sequence number and the distances of the others from it, which
    all calls of that shape share; `settle` turns them into uids when nodes of it are met again.

    Parameters
    ----------
    limit
        How many such calls to keep before the oldest are dropped.
    """

    def __init__(self, limit: int = 50_000) -> None:
        self.limit = limit
        self.by_uid: dict[int, int] = {}
        # Sequence numbers above this have never been freed.
        self.newest = -1
        # (lowest, highest, n, ascending distances from the highest). The ranges ascend and do not overlap: each is
        # above everything freed before.
        self._whole: list[tuple[int, int, int, array[int]]] = []

    def __getitem__(self, uid: int) -> int:
        return self.by_uid[uid]

    def __iter__(self) -> Iterator[int]:
        return iter(self.by_uid)

    def __len__(self) -> int:
        return len(self.by_uid)

    def add(self, n: int, uids: Iterable[int], newest: int) -> None:
        """Call `n` released these nodes; `newest` is the highest sequence number among them."""
        by_uid = self.by_uid
        for uid in uids:
            by_uid.setdefault(uid, n)
        self.newest = max(self.newest, newest)

    def add_whole(self, n: int, highest: int, distances: array[int]) -> None:
        """Call `n` released nodes with the sequence numbers ``highest - distance``, all above `newest`."""
        if not distances:
            return
        self._whole.append((highest - distances[-1], highest, n, distances))
        self.newest = max(self.newest, highest)
        if len(self._whole) > self.limit:
            del self._whole[: self.limit // 4]

    def above(self, number: int) -> None:
        """Nodes up to `number` may have been freed by something that was not recorded in detail."""
        self.newest = max(self.newest, number)

    def call_of(self, number: int) -> int | None:
        """The call noted as a whole that released the node with this sequence number."""
        at = bisect_left(self._whole, number, key=lambda entry: entry[1])
        if at == len(self._whole):
            return None
        lowest, highest, n, distances = self._whole[at]
        if number < lowest:
            return None
        found = bisect_left(distances, highest - number)
        return n if found < len(distances) and distances[found] == highest - number else None

    def settle(self, numbers: Iterable[int], uids: Iterable[int]) -> None:
        """Nodes that were met: give those of them that a whole call released their own entry."""
        if not self._whole:
            return
        for number, uid in zip(numbers, uids, strict=True):
            if number <= self._whole[-1][1] and uid not in self.by_uid:
                n = self.call_of(number)
                if n is not None:
                    self.by_uid[uid] = n

    def forget_missing(self, alive: Collection[int]) -> None:
        """Drop what is known of nodes that have died."""
        self.by_uid = {uid: n for uid, n in self.by_uid.items() if uid in alive}
