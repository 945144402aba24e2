"""The present graph of everything with a name: searched, read, and cached until something changes."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from types import FrameType
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.graph_reader import GraphReader
from graphwidget.capture.graph.pieces import at_once
from graphwidget.capture.lines.provenance import Provenance
from graphwidget.capture.owners import holders, reading
from graphwidget.capture.owners import search as owners
from graphwidget.capture.owners.own_objects import OwnObjects
from graphwidget.capture.owners.roots import find_roots
from graphwidget.model import BackwardCall, Snapshot, is_notebooks

__all__ = ["LiveGraph"]

MAX_CALLED = 64  # number of roots of recent calls whose names are remembered


class LiveGraph:
    """Snapshots of the living graph.

    Parameters
    ----------
    namespace
        Returns the user's variables.
    shell
        IPython's shell, which keeps results alive.
    hidden
        Names that are not the user's own.
    reader
        Reads the graph behind named tensors.
    watch
        Called with the result of a search, and whether it was complete: watches the versions of these tensors.
    running
        Whether a cell is running: then its local variables count, and the snapshot is not cached.
    search_seconds
        Time for one search.
    lock
        What a search outside of a call has to hold.
    is_own
        Whether a file is the user's own.
    """

    def __init__(
        self,
        namespace: Callable[[], dict[str, Any]],
        *,
        shell: Any,
        hidden: Callable[[], Any],
        provenance: Provenance,
        reader: GraphReader,
        watch: Callable[[owners.Search, bool], None],
        running: Callable[[], bool],
        search_seconds: float,
        lock: AbstractContextManager[Any],
        is_own: Callable[[str], bool],
    ) -> None:
        self.others = OwnObjects(lambda: provenance.book.modules, is_own).find
        self.namespace, self.shell, self.hidden = namespace, shell, hidden
        self.provenance, self.reader = provenance, reader
        self.watch, self.running, self.search_seconds, self.lock = watch, running, search_seconds, lock
        self._cached: Snapshot | None = None  # the result of `snapshot` until something changes
        self._names: dict[int, str] = {}  # uid -> a variable that owned the node at an earlier event
        self._called: deque[tuple[int, str | None]] = deque(maxlen=MAX_CALLED)  # roots of recent calls: uid, name

    def changed(self) -> None:
        """Drop the cached snapshot: the next one is read again."""
        self._cached = None

    @property
    def is_known(self) -> bool:
        """Whether nothing has changed since everything was read."""
        return self._cached is not None

    def search(self, frames: Sequence[FrameType] = (), since: int = 0) -> owners.Search:
        """Find the names of living tensors; `since`: only of leaves and of nodes from this sequence number on."""
        self.provenance.name_modules([self.namespace()])
        found = owners.find(
            self.namespace(),
            frames=frames,
            others=self.others(sys._getframe(1), frames),
            shell=self.shell,
            hidden=frozenset(self.hidden()),
            budget_s=self.search_seconds,
            since=since,
        )
        self.watch(found, not since)
        return found

    def again(self) -> None:
        """Find the names of living tensors and watch these, in the middle of a running cell."""
        with self.lock:
            self.search(self._frames())

    def snapshot(self) -> Snapshot:
        """Return the present graph. In a running cell, it is read each time."""
        if self._cached is not None and not self.running():
            return self._cached
        return self.read()

    def read_in_pieces(self) -> Generator[int, None, Snapshot]:
        """Read the present graph in pieces; see `snapshot.taking`."""
        search = self.search(self._frames())
        notes = tuple(search.notes)
        snapshot = yield from self.reader.in_pieces(search.holdings)
        yield 0
        with ti.quiet():
            roots = find_roots(snapshot, search, dict(self._called))
        snapshot = replace(snapshot, roots=roots, notes=(*snapshot.notes, *notes))
        self._cached = self.reader.everything = snapshot
        self.reader.last_call = None
        return snapshot

    read = at_once(read_in_pieces)

    def _frames(self) -> list[FrameType]:
        """Return the frames of cells that are running in this thread."""
        return self.provenance.cell_frames(sys._getframe(1)) if self.running() else []

    # ------------------------------------------------------------ names

    def remember_roots(self, call: BackwardCall, after: Snapshot) -> None:
        """Remember the roots of a call: they stay roots even if other tensors are computed from them."""
        self._called.extend((after.uid[root.node], root.path) for root in call.roots if root.node >= 0)

    def remember_names(self, snapshot: Snapshot) -> None:
        """Remember which variables own which nodes: at a later event, only `Out` may own them."""
        names: dict[int, str] = {}
        for owner in snapshot.owners:
            uid = snapshot.uid[owner.node]
            if not is_notebooks(owner.kind, owner.path):
                names.setdefault(uid, owner.path)
            elif uid in self._names:
                names.setdefault(uid, self._names[uid])
        self._names = names

    def outlived_names(self, snapshot: Snapshot) -> dict[int, str]:
        """Return, for nodes that only the notebook owns, uid -> the variable that owned the node before."""
        kept = {owner.node for owner in snapshot.owners}
        kept -= {owner.node for owner in snapshot.owners if not is_notebooks(owner.kind, owner.path)}
        names = {snapshot.uid[index]: self._names.get(snapshot.uid[index]) for index in kept}
        return {uid: name for uid, name in names.items() if name is not None}

    def holders(self, snapshot: Snapshot) -> dict[str, str]:
        """Return the kinds of the objects on the paths to a snapshot's tensors."""
        spaces: dict[str, Mapping[str, Any]] = {"": self.namespace()}
        for frame in self._frames():
            if frame.f_code.co_flags & reading.CO_OPTIMIZED:
                spaces.setdefault(frame.f_code.co_name, dict(reading.locals_of(frame)))
        paths = (owner.path for owner in snapshot.owners if not is_notebooks(owner.kind, owner.path))
        leaves = (path for leaf in snapshot.leaves.values() for path in leaf.paths)
        return holders.kinds((*paths, *leaves), spaces)

    def is_all_in(self, after: Snapshot) -> bool:
        """Whether a call's snapshot contains all living nodes, judged by the last snapshot of everything."""
        known = self.reader.everything
        first = min((seq for seq in after.seq if seq >= 0), default=0)
        return known is None or not any(0 <= seq < first for seq in known.seq)
