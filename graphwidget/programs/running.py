"""Run the cells of a file in an IPython shell with the tracker on, and go on after an error."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from graphwidget.capture.tracker import Tracker
from graphwidget.programs import posing
from graphwidget.programs.journal import Journal, print_exit
from graphwidget.programs.target import Program


class CellTimeout(BaseException):
    """Raised in a cell that ran longer than allowed. No user code catches it by accident."""


@dataclass(frozen=True)
class Run:
    """A finished run: the tracker with its record, and the journal of cells. `stopped`: why it was, from outside."""

    tracker: Tracker
    journal: Journal
    stopped: str = ""


def run(
    program: Program,
    order: Sequence[int],
    *,
    arguments: Sequence[str] = (),
    timeout: float | None = None,
    progress: Callable[[Iterator[int]], Iterator[int]] = iter,
    begin: Callable[[Tracker, Journal], None] | None = None,
) -> Run:
    """Run a program's cells.

    Parameters
    ----------
    program
        What to run.
    order
        Numbers of cells from 1.
    arguments
        The program's ``sys.argv[1:]``.
    timeout
        Seconds that one cell may run, None: no limit.
    progress
        Wraps the iterator over the steps, for a progress bar.
    begin
        Called with the tracker and the journal before the first cell.

    Notes
    -----
    A cell that is interrupted from outside (Ctrl+C), or runs longer than `timeout`, is the last one to run. A timeout
    raises `CellTimeout` in it. Where a call into C does not come back to Python within
    `GRACE` seconds more, the process ends with status 2 and a message; a call that holds the GIL cannot be stopped.
    """
    shell = _shell()
    pose_as(program.path, arguments, shell)
    with _output_to_stderr():
        tracker = _load(shell)
        journal = Journal(shell, tracker.place_of_error)
        if begin is not None:
            begin(tracker, journal)
        stopped = ""
        for step in progress(iter(range(1, len(order) + 1))):
            cell = order[step - 1]
            with journal.ran(cell), _limit(timeout, program.path, cell), _interruptible() as interrupted:
                result = shell.run_cell(program.cells[cell - 1], store_history=True, cell_id=f"cell-{cell}")
            if interrupted.is_set():
                stopped = f"{program.path}: interrupted in cell {cell}"
            elif isinstance(result.error_in_exec, CellTimeout):
                stopped = f"{program.path}: cell {cell} ran longer than {timeout:g} s (--timeout)"
            result = None
            if stopped:
                journal.stopped = True
                break
            if shell.exit_now:
                print_exit(cell, order[step:])
                break
        return Run(tracker, journal, stopped)


def _shell() -> Any:
    """A fresh shell that writes no history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    os.environ.setdefault("MPLBACKEND", "agg")
    shell: Any = InteractiveShell.instance(config=config)
    shell.ask_exit = lambda: setattr(shell, "exit_now", True)  # what exit() calls; a bare shell has none
    return shell


def pose_as(path: Path, arguments: Sequence[str], shell: Any) -> None:
    """What the program sees of how it was started: as if Python had been called with its path."""
    posing.pose([str(path), *arguments], str(path.resolve().parent))
    shell.user_ns["__file__"] = shell.user_ns_hidden["__file__"] = str(path.absolute())


def _load(shell: Any) -> Tracker:
    from graphwidget.notebook import extension, session

    extension.load_ipython_extension(shell)
    tracker = session.tracker_of(shell)
    tracker.notebook = False  # when the last cell has ended, so has the program
    return tracker


@contextmanager
def _output_to_stderr() -> Iterator[None]:
    """Send the output of the cells to standard error, also from C: standard output is for the answer."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    before, sys.stdout = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout = before
        os.dup2(kept, 1)
        os.close(kept)


GRACE = 5.0


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Tells Ctrl+C, which ends the run, from a cell that raises KeyboardInterrupt itself."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        pressed.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _limit(seconds: float | None, path: Path, cell: int) -> Iterator[None]:
    """Raise CellTimeout in the running cell after `seconds`. Needs the main thread and POSIX timers."""
    if not seconds or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    why = f"{path}: cell {cell} ran longer than {seconds:g} s (--timeout)"

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise CellTimeout(why)

    def give_up() -> None:
        os.write(2, f"graphwidget: {why}, in a call that cannot be interrupted\n".encode())
        os._exit(2)

    before = signal.signal(signal.SIGALRM, stop)
    last = threading.Timer(seconds + GRACE, give_up)
    last.daemon = True
    last.start()
    # Repeated, as the cell may catch every exception.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        last.cancel()
        signal.signal(signal.SIGALRM, before)
