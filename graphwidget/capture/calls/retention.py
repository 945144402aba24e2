"""What is kept alive while a loop runs: some calls of a line are looked at for graphs of earlier iterations.

What piles up in a function is gone when the function returns, and what a container lets go cannot be seen afterwards.
So of the calls of a line a few are looked at, ever fewer: as many as the logarithm of their number. A look that finds
nothing costs a search for names, and a walk of what was made since the last few calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.owners.search import Holding
from graphwidget.model import Look, Snapshot

__all__ = ["Looks", "due", "piling"]

ENOUGH = 3  # iterations of which graphs are found before a look is remembered
BACK = 8  # calls of the same line that a look goes back
MOST_NODES = 2_000  # walked to find out whether anything piles up
LARGE = 20_000  # nodes of a look after which the line is not looked at again
REMEMBERED = 60_000  # nodes of all looks together


def due(seen: int) -> bool:
    """Whether the call with this number (from 1) of a line is to be looked at: 4, 8, 16, 32, 64, 96, 128, 192, ..."""
    finer = 2 if seen > 64 else 1
    return seen >= 4 and not seen & ((1 << (seen.bit_length() - finer)) - 1)


def piling(holdings: Sequence[Holding], starts: Sequence[int]) -> bool:
    """Whether what these tensors lead to was made in several of the stretches that begin at `starts` (ascending)."""
    queue: list[tuple[int, int, Any]] = []
    found: set[Any] = set()
    stretches: set[int] = set()

    def meet(node: Any) -> None:
        if node is not None and node not in found:
            found.add(node)
            number = ti.node_readers(type(node))[1](node)
            if starts[0] <= number < ti.NO_SEQUENCE:
                heappush(queue, (-number, len(found), node))

    for holding in holdings:
        meet(_node_of(holding))
    while queue and len(found) < MOST_NODES:
        number, _, node = heappop(queue)
        stretches.add(bisect_right(starts, -number))
        if len(stretches) >= ENOUGH:
            return True
        for following, _ in ti.node_readers(type(node))[0](node):
            meet(following)
    return False


def since(holdings: Sequence[Holding], oldest: int) -> list[Holding]:
    """The tensors that were made from this number on."""
    found = []
    for holding in holdings:
        node = _node_of(holding)
        if node is not None and ti.node_readers(type(node))[1](node) >= oldest:
            found.append(holding)
    return found


def _node_of(holding: Holding) -> Any:
    leaf = holding.is_leaf or holding.kind in ("out", "traceback") or ti.maybe_stale_view(holding.tensor)
    return None if leaf else ti.grad_fn(holding.tensor)


class Looks:
    """The looks that are remembered, of each line the last few."""

    def __init__(self, of_a_line: int = 4) -> None:
        self._of_a_line = of_a_line
        self._lines: OrderedDict[object, list[Look]] = OrderedDict()

    def look(
        self,
        line: object,
        call: int,
        starts: Sequence[int],
        search: Callable[[int], Sequence[Holding]],
        read: Callable[[list[Holding]], Snapshot],
    ) -> None:
        """Look at what is alive before a call.

        Parameters
        ----------
        line
            What the calls of one loop have in common.
        starts
            Sequence numbers at the earlier calls of that line, ascending.
        search, read
            Find what can be named and was made from a sequence number on; read the graph behind some of it.
        """
        before = self._lines.get(line)
        if len(starts) < ENOUGH - 1 or (before and len(before[-1].graph) > LARGE):
            return
        first = 2 * starts[0] - starts[1]  # what the first iteration made, if it is like the second
        holdings = search(max(first, 0))
        if not piling(holdings, starts[-BACK:]):
            return
        self._lines.setdefault(line, []).append(Look(call, read(since(holdings, first))))
        del self._lines[line][: -self._of_a_line]
        self._lines.move_to_end(line)
        while sum(len(look.graph) for look in self.all()) > REMEMBERED and len(self._lines) > 1:
            self._lines.popitem(last=False)

    def all(self) -> tuple[Look, ...]:
        """The oldest first."""
        return tuple(sorted((look for line in self._lines.values() for look in line), key=lambda look: look.call))
