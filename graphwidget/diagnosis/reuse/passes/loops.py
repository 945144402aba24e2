"""Which iteration made a node: the calls of one line of the program, and the stretches between them.

Between two backward calls of one line lies one iteration, of a loop, a function's calls, or a cell that is run again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from graphwidget.diagnosis.wording import source_line
from graphwidget.model import BackwardCall, Place, Record, Snapshot

ENOUGH = 3  # iterations that make a pile
MANY = 10  # those that do if it is not sure that no later call is to run them


class Line:
    """The calls of one line, oldest first; iteration `i` is the one of `calls[i]`.

    `open`: the calls build graphs of gradients, and no other call has come since that could run these.
    """

    def __init__(self, calls: list[BackwardCall], open: bool = False) -> None:
        self.calls, self.open = calls, open
        self.starts = [call.newest_seq for call in calls]
        self._known: dict[tuple[int, Place | None], int | None] = {}

    @cached_property
    def number(self) -> dict[int, int]:
        """n of a call -> its iteration."""
        return {call.n: i for i, call in enumerate(self.calls)}

    def around(self, n: int) -> set[int]:
        """The iterations that a call with this number may belong to: of a call of another line, the two next to it."""
        at = self.number.get(n)
        before = bisect_left(self.calls, n, key=lambda call: call.n)
        return {before - 1, before} if at is None else {at}

    def iteration(self, graph: Snapshot, index: int) -> int | None:
        """The iteration in which a node was made; None: before the loop, after it, or a leaf."""
        seq = graph.seq[index]
        if seq < 0:
            return None
        key = (bisect_right(self.starts, seq), graph.place_of(index))
        if key not in self._known:
            self._known[key] = self._of(*key)
        return self._known[key]

    def _of(self, before: int, place: Place | None) -> int | None:
        """The iteration of a node made at `place` when `before` calls had been made.

        A node that a pass makes after its call belongs to that pass: ``total += loss``. In a cell's loop the number of
        the pass decides; elsewhere all that is known is that the node lies between two calls.
        """
        passed = place.iteration if place is not None else None
        following = self.calls[before].place if before < len(self.calls) else None
        last = self.calls[before - 1].place if before else None
        if last is not None and last.iteration == passed and (following is None or following.iteration != passed):
            return before - 1
        if following is None:
            return None
        if last is None and (place is None or place.run != following.run):
            return None
        if last is None and passed is None and following.iteration is not None:
            return None
        return before

    def periods(self, seqs: list[int]) -> int:
        """The number of stretches between calls with one of these (ascending) numbers: at least iterations less one."""
        bounds = [bisect_left(seqs, start) for start in self.starts]
        return sum(a < b for a, b in zip([0, *bounds], [*bounds, len(seqs)]))


def lines_of(record: Record) -> list[Line]:
    """The lines that made enough calls for a pile.

    A step of a higher-order gradient ends no iteration, as a call that runs all steps comes later. Where none comes,
    many steps are iterations of their own.
    """
    plain: dict[tuple[object, ...], list[BackwardCall]] = defaultdict(list)
    higher: dict[tuple[object, ...], list[BackwardCall]] = defaultdict(list)
    for call in record.calls:
        if call.result != "running" and call.newest_seq >= 0:
            calls = higher if call.create_graph else plain
            calls[(call.thread, *source_line(call.place))].append(call)
    last = max((call.n for call in record.calls if not call.create_graph), default=-1)
    open_ = (calls for calls in higher.values() if calls[0].n > last and calls[0].api == "autograd.grad")
    lines = [Line(calls) for calls in plain.values() if len(calls) >= ENOUGH]
    return lines + [Line(calls, open=True) for calls in open_ if len(calls) >= MANY]


def iterations_below(graph: Snapshot, line: Line, nodes: Iterable[int], most: int) -> dict[int, frozenset[int]]:
    """For each node the iterations that made it and what it builds on, up to `most` of them.

    `nodes` must contain all that they lead to.
    """
    below: dict[int, frozenset[int]] = {}
    nothing: frozenset[int] = frozenset()
    for index in sorted(nodes, key=graph.seq.__getitem__):  # no edge leads from a lower to a higher number
        own = line.iteration(graph, index)
        found = nothing if own is None else frozenset((own,))
        for following in graph.next(index):
            more = below.get(following, nothing)
            if len(found) < most and not more <= found:
                found = more | found if not found <= more else more
        below[index] = found
    return below
