"""What a cell has left is read at its end; if that is much, once the kernel is idle."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from time import perf_counter

from graphwidget.capture.calls.history import History
from graphwidget.capture.cell_runs import CellRuns
from graphwidget.capture.graph.pieces import AtLeast, WorkLock
from graphwidget.capture.listeners import Listeners
from graphwidget.capture.live_graph import LiveGraph
from graphwidget.capture.policy import TrackerPolicy
from graphwidget.model import Event, Snapshot

__all__ = ["CellReading", "WhenIdle"]

WhenIdle = Callable[[float, Callable[[], None]], object]  # has a function called, after so many seconds at the earliest


class CellReading:
    """Reads the graph at the ends of cells and tells listeners.

    Parameters
    ----------
    policy
        Returns the thresholds.
    lock
        Reading is left for later over this lock: who takes it first completes the reading.
    idle
        Asked at the end of a cell: has a function called once the kernel is idle; None: it will not be.
    busy
        Called with words for what is being done; None: nothing is.
    settle
        Called with each graph that was read, before listeners hear of it.
    is_on
        Whether the tracker is running.
    """

    def __init__(
        self,
        policy: Callable[[], TrackerPolicy],
        lock: WorkLock,
        *,
        live: LiveGraph,
        cells: CellRuns,
        history: History,
        listeners: Listeners,
        idle: Callable[[], WhenIdle | None],
        busy: Callable[[str | None], None],
        settle: Callable[[Snapshot], None],
        is_on: Callable[[], bool],
    ) -> None:
        self._policy, self.lock = policy, lock
        self.live, self.cells, self.history, self.listeners = live, cells, history, listeners
        self.idle, self.busy, self.settle, self.is_on = idle, busy, settle, is_on
        self._began, self._seconds = perf_counter(), 0.0  # when watching began; seconds of reading since

    def cell_ended(self, run: int, ok: bool) -> None:
        """A cell has ended: read the graph, now or later. Only for who has the lock."""
        policy = self._policy()
        when_idle = self.idle() if not self.cells.running else None
        if ok and self._takes_too_much(policy) and (when_idle is not None or not self.listeners):
            event = self._event(run)
            if when_idle is not None and self.listeners:
                when_idle(policy.quiet_seconds, partial(self._tell_late, event))
            return
        work = self._read(run, ok)
        began = perf_counter()
        for left in work:
            self._seconds, began = self._seconds + perf_counter() - began, perf_counter()
            if when_idle is not None and left > policy.read_at_once:
                many = f"more than {policy.read_at_once:,}"
                self.busy(f"reading {many if isinstance(left, AtLeast) else f'{left:,}'} nodes")
                self.lock.leave(work, partial(when_idle, policy.soon_seconds))
                return
        self._seconds += perf_counter() - began

    def _read(self, run: int, ok: bool) -> Generator[int, None, None]:
        """Read what a cell has left, and tell listeners; yields how many nodes are still to be read."""
        try:
            snapshot = yield from self.live.read_in_pieces()
            yield 0
            self.live.remember_names(snapshot)
            self.settle(snapshot)
            yield 0
            held_bytes = snapshot.held_bytes()
            yield 0
        finally:
            if not self.cells.running:
                self.busy(None)
        event = self._event(run, ok, snapshot, held_bytes)
        yield 0
        self.listeners.tell(event)

    def _event(self, run: int, ok: bool = True, snapshot: Snapshot | None = None, held: int | None = None) -> Event:
        """Remember that a cell has ended; without a snapshot if the graph was not read."""
        cell = self.cells.cell_of(run)
        return self.history.add_event(
            Event(
                self.history.next_event,
                "cell",
                cell,
                label=f"In[{cell}]" if cell is not None else "cell",
                ok=ok,
                held_bytes=held,
                nodes=len(snapshot) if snapshot is not None else None,
                snapshot=snapshot,
            )
        )

    def _takes_too_much(self, policy: TrackerPolicy) -> bool:
        """Whether reading everything, and drawing it, has taken much of the time.

        So it is where many cells follow each other at once and much is alive. Then it is done when somebody asks, and
        for listeners when no other cell follows.
        """
        free = policy.free_seconds + policy.share * (perf_counter() - self._began)
        return self.live.reader.everything is not None and self._seconds > free

    def _tell_late(self, event: Event) -> None:
        """Tell listeners of a cell after all, unless more has happened since: they hear of the end of that."""
        with self.lock:
            if self.is_on() and not self.cells.running and self.history.events[-1].id == event.id:
                self.listeners.tell(event)
