"""Cells and clicks take turns.

A click on a button arrives in whatever thread the front end's message is handled in: a subshell's
thread while the kernel is idle or busy, the main thread right after a cell. So a click that runs
something waits for the running cell, a cell that begins waits for the running click, and clicks run
one after the other. Waiting clicks run in the thread of the cell that held them up, right after it.
What runs cells again does so in the main thread, as cells do: autograd numbers its nodes per thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Job", "Turns"]


@dataclass(eq=False)
class Job:
    """Work for a click. `run` must not raise; `dropped` gets the reason why it will never run.

    `main`: it must run in the main thread.
    """

    request: int
    label: str
    run: Callable[[], None]
    queued: Callable[[str], None]
    dropped: Callable[[str], None]
    main: bool = False


@dataclass
class _Cell:
    token: object  # the same at the beginning and at the end of a cell
    label: str


class Turns:
    """One at a time: a cell (with the cells it runs itself) or a job.

    Parameters
    ----------
    to_main
        Makes the main thread call a function soon; returns at once. None: there is no other thread.
    """

    def __init__(self, to_main: Callable[[Callable[[], None]], None] | None = None) -> None:
        self._to_main = to_main
        self._changed = threading.Condition()
        self._cells: list[_Cell] = []
        self._jobs: deque[Job] = deque()
        self._job: Job | None = None
        self._thread: int | None = None  # of the running job

    @property
    def busy(self) -> str | None:
        """The label of what is running, None: nothing."""
        with self._changed:
            return self._holder()

    def cell_begins(self, token: object, label: str) -> None:
        """Wait for the running job, unless the cell is a part of it."""
        with self._changed:
            try:
                while self._job is not None and self._thread != threading.get_ident():
                    self._changed.wait(0.1)  # short, so that Ctrl-C gets through
            finally:
                self._cells.append(_Cell(token, label))

    def cell_ends(self, token: object, *, interrupted: bool = False) -> None:
        """The cell that began with `token` is over; then waiting jobs run here.

        Cells that began later and never ended are over as well. An unknown token changes nothing.
        """
        with self._changed:
            at = next((i for i, cell in enumerate(self._cells) if cell.token is token), None)
            if at is not None:
                del self._cells[at:]
            dropped = list(self._jobs) if interrupted and not self._cells else []
            if dropped:
                self._jobs.clear()
        for job in dropped:
            job.dropped("The kernel was interrupted while this was waiting. Nothing has run.")
        self._work()

    def submit(self, job: Job) -> None:
        """Run the job now in this thread, or when it is its turn."""
        with self._changed:
            holder = self._holder()
            self._jobs.append(job)
        if holder is not None:
            job.queued(holder)
        self._work()

    def cancel(self, request: int) -> bool | None:
        """Take a waiting job out of the queue. True: done; False: it is running; None: there is no such job."""
        with self._changed:
            found = next((job for job in self._jobs if job.request == request), None)
            if found is None:
                return False if self._job is not None and self._job.request == request else None
            self._jobs.remove(found)
        found.dropped("Cancelled. Nothing has run.")
        return True

    def drop_all(self, why: str) -> None:
        """Answer every waiting job with `why`: the extension is being unloaded."""
        with self._changed:
            dropped, self._jobs = list(self._jobs), deque()
        for job in dropped:
            job.dropped(why)

    def _holder(self) -> str | None:
        if self._cells:
            return self._cells[0].label
        return self._job.label if self._job is not None else None

    def _work(self) -> None:
        """Run waiting jobs while nothing else runs."""
        while True:
            with self._changed:
                if self._cells or self._job is not None or not self._jobs:
                    return
                if self._jobs[0].main and self._to_main and threading.current_thread() is not threading.main_thread():
                    self._to_main(self._work)
                    return
                self._job = job = self._jobs.popleft()
                self._thread = threading.get_ident()
            try:
                job.run()
            finally:
                with self._changed:
                    self._job = self._thread = None
                    self._changed.notify_all()
