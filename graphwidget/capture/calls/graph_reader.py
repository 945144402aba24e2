"""Reads the live graph into snapshots, and keeps the earlier snapshots that the next reading builds on."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.freed import Freed
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take, taking
from graphwidget.capture.lines.provenance import Provenance
from graphwidget.capture.owners.search import Holding
from graphwidget.model import Snapshot

__all__ = ["GraphReader"]


class GraphReader:
    """Takes snapshots that share uids, places, and the record of which call freed which node.

    Attributes
    ----------
    everything
        The last snapshot of all tensors that have a name.
    last_call
        The last snapshot of a call's graph, if it is newer.
    watched_from
        The first sequence number since recording began.
    """

    def __init__(self, identity: Identity, provenance: Provenance, freed: Freed) -> None:
        self.identity, self.provenance, self.freed = identity, provenance, freed
        self.everything: Snapshot | None = None
        self.last_call: Snapshot | None = None
        self.watched_from = 0

    def start(self) -> None:
        """Begin to record. Which call freed a node before now is unknown."""
        self.watched_from = ti.sequence_nr()
        self.freed.unsure(self.watched_from)

    def earlier(self, since: int = 0) -> Snapshot | None:
        """Return the largest known snapshot that may have nodes with this sequence number or a higher one."""
        known = [snapshot for snapshot in (self.last_call, self.everything) if snapshot is not None]
        return max((snapshot for snapshot in known if snapshot.newest >= since), key=len, default=None)

    def of_call(
        self, outputs: Any, inputs: Any, holdings: Sequence[Holding] = (), *, since: int = 0, thorough: bool = False
    ) -> Snapshot:
        """Return the graph of a call. `since`: the lowest sequence number of its nodes."""
        self.last_call = take(
            list(outputs),
            inputs=list(inputs) if isinstance(inputs, (tuple, list)) else [inputs],
            owners=holdings,
            identity=self.identity,
            places=self.provenance,
            freed_by=self.freed,
            previous=self.earlier(since),
            watched_from=self.watched_from,
            thorough=thorough,
            outputs=True,
        )
        return self.last_call

    def of_holdings(self, holdings: Sequence[Holding]) -> Snapshot:
        """Return the graph behind some named tensors."""
        return take(
            (),
            owners=holdings,
            identity=self.identity,
            places=self.provenance,
            freed_by=self.freed,
            previous=self.earlier(),
            watched_from=self.watched_from,
        )

    def in_pieces(self, holdings: Sequence[Holding]) -> Generator[int, None, Snapshot]:
        """Like `of_holdings`, in pieces; see `snapshot.taking`."""
        return taking(
            (),
            owners=holdings,
            identity=self.identity,
            places=self.provenance,
            freed_by=self.freed,
            previous=self.earlier(),
            watched_from=self.watched_from,
        )
