"""Samples the graphs of earlier iterations that are still alive while a loop runs, before a few calls of each line.

Graphs that pile up in a function are gone when it returns, and an element that a container dropped cannot be seen
afterwards. So samples are taken while the loop runs, ever fewer: their number is about the logarithm of the number of
calls. A sample that finds nothing costs one search for names, and a walk of the nodes made since the last few calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from threading import get_ident
from types import FrameType
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.pending import PendingCall
from graphwidget.capture.owners.search import Holding
from graphwidget.model import Look, Snapshot

__all__ = ["RetentionSamples", "due", "piles_up"]

ENOUGH = 3  # iterations whose graphs must be found before a sample is kept
BACK = 8  # number of earlier calls of the same line that a sample covers
MOST_NODES = 2_000  # nodes walked to find out whether graphs pile up
LARGE = 20_000  # nodes of a sample above which the line gets no further sample
REMEMBERED = 60_000  # nodes of all samples together


def due(seen: int) -> bool:
    """Whether a sample is taken before the call with this number (from 1) of a line: 4, 8, 16, 32, 64, 96, 128, ..."""
    finer = 2 if seen > 64 else 1
    return seen >= 4 and not seen & ((1 << (seen.bit_length() - finer)) - 1)


def piles_up(holdings: Sequence[Holding], starts: Sequence[int]) -> bool:
    """Whether the graphs of these tensors were made in several of the iterations that begin at `starts` (ascending)."""
    queue: list[tuple[int, int, Any]] = []
    found: set[Any] = set()
    stretches: set[int] = set()

    def visit(node: Any) -> None:
        if node is not None and node not in found:
            found.add(node)
            number = ti.node_readers(type(node))[1](node)
            if starts[0] <= number < ti.NO_SEQUENCE:
                heappush(queue, (-number, len(found), node))

    for holding in holdings:
        visit(_node_of(holding))
    while queue and len(found) < MOST_NODES:
        number, _, node = heappop(queue)
        stretches.add(bisect_right(starts, -number))
        if len(stretches) >= ENOUGH:
            return True
        for following, _ in ti.node_readers(type(node))[0](node):
            visit(following)
    return False


def since(holdings: Sequence[Holding], oldest: int) -> list[Holding]:
    """Return the tensors whose nodes have this sequence number or a higher one."""
    found = []
    for holding in holdings:
        node = _node_of(holding)
        if node is not None and ti.node_readers(type(node))[1](node) >= oldest:
            found.append(holding)
    return found


def _node_of(holding: Holding) -> Any:
    leaf = holding.is_leaf or holding.kind in ("out", "traceback") or ti.maybe_stale_view(holding.tensor)
    return None if leaf else ti.grad_fn(holding.tensor)


class RetentionSamples:
    """The last few samples of each line.

    Parameters
    ----------
    search
        Finds the named tensors, given the frames of cells and the lowest sequence number that matters.
    read
        Reads the graph behind named tensors.
    of_a_line
        Number of samples of one line that are kept.
    """

    def __init__(
        self,
        *,
        search: Callable[[Sequence[FrameType], int], Sequence[Holding]],
        read: Callable[[list[Holding]], Snapshot],
        of_a_line: int = 4,
    ) -> None:
        self.search, self.read, self._of_a_line = search, read, of_a_line
        self._lines: OrderedDict[object, list[Look]] = OrderedDict()
        # Thread -> the sequence numbers between which the last sample has looked, if it found nothing.
        self._nothing: dict[int, tuple[int, int]] = {}

    def take(self, pending: PendingCall, starts: Sequence[int], frames: Sequence[FrameType]) -> None:
        """Before a call made by a line of a cell, check whether graphs of earlier iterations are still alive.

        `starts`: the sequence numbers at the earlier calls of the line in this thread, ascending.
        """
        if pending.line_key is None:
            return
        line = (pending.line_key, get_ident())
        before = self._lines.get(line)
        if len(starts) < ENOUGH - 1 or (before and len(before[-1].graph) > LARGE):
            return
        recent = starts[-BACK:]
        began, ended = self._nothing.get(line[1], (0, -1))
        if began <= recent[0] and recent[-1] <= ended:
            return  # another line of this loop has been sampled in this iteration: what piles up would have been found
        first = 2 * starts[0] - starts[1]  # where the first iteration began, if it is as long as the second
        holdings = self.search(frames, max(first, 0))
        if not piles_up(holdings, recent):
            self._nothing[line[1]] = (recent[0], pending.newest)
            return
        self._lines.setdefault(line, []).append(Look(pending.n, self.read(since(holdings, first))))
        del self._lines[line][: -self._of_a_line]
        self._lines.move_to_end(line)
        while sum(len(sample.graph) for sample in self.all()) > REMEMBERED and len(self._lines) > 1:
            self._lines.popitem(last=False)

    def all(self) -> tuple[Look, ...]:
        """Return all samples, the oldest first."""
        return tuple(sorted((sample for line in self._lines.values() for sample in line), key=lambda one: one.call))
