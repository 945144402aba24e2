"""Which stretch of sequence numbers was used up where: sorted columns with a bounded length.

A node's sequence number is taken from a counter of its thread, so "the counter stood at 12 when line 4
began and at 15 when it ended" places the nodes 12, 13 and 14. A stretch is kept only where the counter
moved, and neighbours with the same key are one stretch, so that a loop costs a few numbers per line.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

__all__ = ["Ranges"]

FRESH = 4096


class Ranges:
    """Ascending stretches [start, end), each with a key of three small integers.

    Parameters
    ----------
    limit
        Number of stretches above which `full` turns true; `keep` then makes room.
    """

    def __init__(self, limit: int = 100_000) -> None:
        self.limit = limit
        self.starts = array("q")
        self.ends = array("q")
        self.keys = (array("q"), array("q"), array("q"))
        # Appending here is all that happens at a line; the columns are filled when they are needed.
        self.fresh: list[tuple[int, int, int, int, int]] = []

    def __len__(self) -> int:
        return len(self.starts) + len(self.fresh)

    @property
    def full(self) -> bool:
        return len(self) > self.limit

    def add(self, start: int, end: int, a: int, b: int, c: int) -> None:
        """Append a stretch; `start` is never below the last end, or the counter was not one of this thread."""
        self.fresh.append((start, end, a, b, c))
        if len(self.fresh) > FRESH:
            self.settle()

    def settle(self) -> None:
        """Move what is fresh into the columns. Neighbours with the same key become one."""
        fresh, self.fresh = self.fresh, []
        starts, ends, (first, second, third) = self.starts, self.ends, self.keys
        for start, end, a, b, c in fresh:
            if ends and ends[-1] == start and first[-1] == a and second[-1] == b and third[-1] == c:
                ends[-1] = end
                continue
            starts.append(start)
            ends.append(end)
            first.append(a)
            second.append(b)
            third.append(c)

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
        """Start and end of the stretch that holds `seq`, which `find` has just found."""
        at = bisect_right(self.starts, seq) - 1
        return self.starts[at], self.ends[at]

    def keep(self, live: Sequence[int], newest: int) -> None:
        """Drop the stretches that hold none of the ascending numbers `live`, except the `newest` last ones."""
        self.settle()
        starts, ends = self.starts, self.ends
        border = max(0, len(starts) - newest)
        wanted = [i for i in range(border) if (p := bisect_left(live, starts[i])) < len(live) and live[p] < ends[i]]
        wanted.extend(range(border, len(starts)))
        self.starts = array("q", [starts[i] for i in wanted])
        self.ends = array("q", [ends[i] for i in wanted])
        self.keys = tuple(array("q", [key[i] for i in wanted]) for key in self.keys)  # type: ignore[assignment]
