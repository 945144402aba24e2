"""Which stretch of sequence numbers was used up where: sorted columns with a bounded length.

A node's sequence number is taken from a counter of its thread, so "the counter stood at 12 when line 4
began and at 15 when it ended" places the nodes 12, 13 and 14. A stretch is kept only where the counter
moved, and neighbours with the same key are one stretch, so that a loop costs a few numbers per line.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

__all__ = ["Ranges"]

LIMIT = 20_000  # stretches, 40 bytes each: a training loop gets there soon, and then grows no more
MOST = 400_000
FRESH = 5 * 4096  # numbers, five a stretch


class Ranges:
    """Ascending stretches [start, end), each with a key of three small integers.

    Parameters
    ----------
    limit
        Number of stretches above which `full` turns true; `keep` then makes room. Where more than half of them hold
        what lives, the limit rises with that.
    most
        More stretches than this are never kept.
    """

    def __init__(self, limit: int = LIMIT, most: int = MOST) -> None:
        self.limit, self.most = limit, most
        self._newest = limit // 2  # are kept in any case
        self.starts = array("q")
        self.ends = array("q")
        self.keys = (array("q"), array("q"), array("q"))
        # Appending here is all that happens at a line, one stretch after the other: start, end and the key. The
        # columns are filled when they are needed. It stays the same list.
        self.fresh: list[int] = []
        self._forgot = 0  # how often stretches were dropped

    def __len__(self) -> int:
        return len(self.starts) + len(self.fresh) // 5

    @property
    def full(self) -> bool:
        return len(self) > self.limit

    def add(self, start: int, end: int, a: int, b: int, c: int) -> None:
        """Append a stretch; `start` is never below the last end, or the counter was not one of this thread."""
        self.fresh += (start, end, a, b, c)
        self.join()

    def join(self) -> None:
        """Neighbours with the same key are one: join the last two if they are such. Keep `fresh` within its bound."""
        fresh = self.fresh
        if len(fresh) >= 10 and fresh[-9] == fresh[-5] and fresh[-8:-5] == fresh[-3:]:
            fresh[-9] = fresh[-4]
            del fresh[-5:]
        elif len(fresh) > FRESH:
            self.settle()

    def settle(self) -> None:
        """Move what is fresh into the columns."""
        fresh = self.fresh[:]  # its thread may go on appending
        del self.fresh[: len(fresh)]
        # Nobody has made room, in a cell that runs on and on without a call: the oldest places become unknown.
        over = max(0, len(self.starts) + len(fresh) // 5 - self.most)
        for at, column in enumerate((self.starts, self.ends, *self.keys)):
            column.fromlist(fresh[at::5])
            if over:
                del column[:over]
        self._forgot += over > 0

    def find(self, seq: int) -> tuple[int, int, int] | None:
        """The key of the stretch that holds `seq`, or None."""
        if self.fresh:
            self.settle()
        at = bisect_right(self.starts, seq) - 1
        if at < 0 or seq >= self.ends[at]:
            return None
        first, second, third = self.keys
        return first[at], second[at], third[at]

    def around(self, seq: int) -> tuple[int, int]:
        """Start and end of the stretch or gap that holds `seq`. `find` has just been asked."""
        at = bisect_right(self.starts, seq) - 1
        if at < 0 or seq >= self.ends[at]:
            following = self.starts[at + 1] if at + 1 < len(self.starts) else sys.maxsize
            return max(self.ends[at] if at >= 0 else 0, 0), following
        return self.starts[at], self.ends[at]

    def mark(self) -> tuple[int, int, int]:
        """Another one whenever `find` may answer something else than before."""
        self.settle()
        return self._forgot, len(self.starts), self.ends[-1] if self.ends else 0

    def keep(self, live: Sequence[int]) -> None:
        """Drop the stretches that hold none of the ascending numbers `live`, except the newest."""
        self.settle()
        starts, ends = self.starts, self.ends
        border = max(0, len(starts) - self._newest)
        wanted = [i for i in range(border) if (p := bisect_left(live, starts[i])) < len(live) and live[p] < ends[i]]
        wanted.extend(range(border, len(starts)))
        self.starts = array("q", [starts[i] for i in wanted])
        self.ends = array("q", [ends[i] for i in wanted])
        self.keys = tuple(array("q", [key[i] for i in wanted]) for key in self.keys)  # type: ignore[assignment]
        self.limit = 2 * max(len(wanted), self._newest)
        self._forgot += 1
