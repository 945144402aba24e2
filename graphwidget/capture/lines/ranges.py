"""Which stretch of sequence numbers was used where: sorted columns with a bounded length.

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

LIMIT = 20_000  # stretches, 40 bytes each: a training loop reaches this soon, and then grows no further
MOST = 400_000  # stretches
FRESH = 5 * 4096  # numbers, five per stretch


class Ranges:
    """Ascending stretches [start, end), each with a key of three small integers.

    Parameters
    ----------
    limit
        Number of stretches above which `full` is true; `keep` then makes room. If more than half of the stretches
        hold living nodes, the limit rises with their number.
    most
        Upper bound for the number of stretches; beyond it the oldest are dropped.
    """

    def __init__(self, limit: int = LIMIT, most: int = MOST) -> None:
        self.limit, self.most = limit, most
        self._newest = limit // 2  # number of stretches that `keep` never drops
        self.starts = array("q")
        self.ends = array("q")
        self.keys = (array("q"), array("q"), array("q"))
        # At a line, a stretch is only appended here: start, end and the key. The columns are filled when they are
        # needed. Callers hold this list, so it is never replaced.
        self.fresh: list[int] = []
        self._forgot = 0  # how often stretches were dropped

    def __len__(self) -> int:
        return len(self.starts) + len(self.fresh) // 5

    @property
    def full(self) -> bool:
        return len(self) > self.limit

    def add(self, start: int, end: int, a: int, b: int, c: int) -> None:
        """Append a stretch. `start` is at least the last end, since all counts are those of one thread."""
        self.fresh += (start, end, a, b, c)
        self.join()

    def join(self) -> None:
        """Join the last two stretches if they are adjacent and have the same key. Keep `fresh` within its bound."""
        fresh = self.fresh
        if len(fresh) >= 10 and fresh[-9] == fresh[-5] and fresh[-8:-5] == fresh[-3:]:
            fresh[-9] = fresh[-4]
            del fresh[-5:]
        elif len(fresh) > FRESH:
            self.settle()

    def settle(self) -> None:
        """Move `fresh` into the columns."""
        fresh = self.fresh[:]  # its thread may append meanwhile
        del self.fresh[: len(fresh)]
        # A cell that runs long without a backward call makes no room: the oldest places become unknown.
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
        """Start and end of the stretch or gap that holds `seq`. Call `find` first."""
        at = bisect_right(self.starts, seq) - 1
        if at < 0 or seq >= self.ends[at]:
            following = self.starts[at + 1] if at + 1 < len(self.starts) else sys.maxsize
            return max(self.ends[at] if at >= 0 else 0, 0), following
        return self.starts[at], self.ends[at]

    def mark(self) -> tuple[int, int, int]:
        """A value that changes whenever results of `find` may change."""
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
