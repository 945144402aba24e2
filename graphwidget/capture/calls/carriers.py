"""Carriers: the names that held tensors of the old part when it was freed, and still at the failing call."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType

from graphwidget.capture.calls.name_search import NameSearch
from graphwidget.capture.calls.outcome import boundary, carriers
from graphwidget.capture.calls.reachable import MAX_HOLDINGS, numbers_by_path
from graphwidget.capture.graph.freed import Freed
from graphwidget.capture.graph.identity import Identity
from graphwidget.model import BackwardCall, Snapshot

__all__ = ["Carriers"]


class Carriers:
    """Remembers which paths held which tensors at each call that freed nodes.

    Parameters
    ----------
    recent
        The calls that are still remembered, by n.
    """

    def __init__(
        self,
        freed: Freed,
        identity: Identity,
        names: NameSearch,
        recent: Callable[[], dict[int, BackwardCall]],
    ) -> None:
        self.freed, self.identity, self.names, self.recent = freed, identity, names, recent
        self._held: OrderedDict[int, dict[str, int]] = OrderedDict()  # n -> path -> sequence number

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def remember(self, n: int, held: dict[str, int]) -> None:
        """Remember that at call `n` these paths held the nodes with these sequence numbers."""
        self._held[n] = held
        while len(self) > MAX_HOLDINGS and len(self._held) > 1:
            self._held.popitem(last=False)

    def added_to(self, call: BackwardCall, graph: Snapshot, frames: Sequence[FrameType]) -> BackwardCall:
        """Return the record of a call that failed at an old part, with the paths of the tensors at its border.

        Parameters
        ----------
        graph
            The graph before the call.
        frames
            The frames of cells that are running.
        """
        old = self.freed.nodes_of(call.freed_by, zip(graph.uid, graph.seq, strict=True))
        earlier = self.recent().get(call.freed_by) if call.freed_by is not None else None
        if earlier is not None:
            old.update(earlier.executed)
            if not earlier.executed:
                self.recent()[earlier.n] = replace(earlier, executed=array("q", sorted(old)))
        border, new = boundary(graph, old)
        numbers = {graph.seq[i] for i in border}
        since = 0 if self.identity.apart_below else min((number for number in graph.seq if number >= 0), default=0)
        search = self.names.find(frames, since, force=True)
        now = numbers_by_path(search.holdings) if search is not None else {}
        del search
        then = self._held.get(call.freed_by) if call.freed_by is not None else None
        above = {graph.seq[i] for i in new.difference(root.node for root in call.roots)}
        paths = carriers(numbers, above - {-1}, now if then is None else then, now)
        return replace(call, carriers=paths, boundary=tuple(graph.uid[i] for i in border))
