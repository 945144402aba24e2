"""Reads the graph at the end of a cell; a large graph only once the kernel is idle."""

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

WhenIdle = Callable[[float, Callable[[], None]], object]  # schedules a function, after a number of seconds at least


class CellReading:
    """Reads the graph at the ends of cells and tells listeners.

    Parameters
    ----------
    policy
        Returns the thresholds.
    lock
        Holds postponed reading: whoever takes the lock first completes it.
    idle
        Called at the end of a cell. Returns what schedules a function for the idle kernel; None: it will not be idle.
    busy
        Called with words for the work in progress; None: the work has ended.
    settle
        Called with each graph that was read, before the listeners.
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
        """Read the graph after a cell has ended, now or later. The caller must hold the lock."""
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
        """Read the graph after a cell and call the listeners. Yields the number of nodes still to be read."""
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
        """Whether reading and drawing everything has taken too large a share of the time.

        That happens if many cells follow each other at once and much is alive. Then the graph is read only when
        somebody asks for it, and for listeners when no other cell follows.
        """
        free = policy.free_seconds + policy.share * (perf_counter() - self._began)
        return self.live.reader.everything is not None and self._seconds > free

    def _tell_late(self, event: Event) -> None:
        """Call the listeners for a cell late, unless there was a newer event: they are called for that one."""
        with self.lock:
            if self.is_on() and not self.cells.running and self.history.events[-1].id == event.id:
                self.listeners.tell(event)
