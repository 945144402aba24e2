"""Run the cells of a file in an IPython shell with the tracker on, and go on after an error."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from graphwidget.capture.tracker import Tracker
from graphwidget.model import Record
from graphwidget.programs import Program


class CellTimeout(BaseException):
    """Raised in a cell that ran longer than allowed. No user code catches it by accident."""


class StoppedProgram(Exception):
    """The program could not be run to its end; the message says where."""


@dataclass(frozen=True)
class CellError:
    """What a cell raised. `step` counts runs from 1, `cell` is the file's cell, `line` the outermost frame's."""

    step: int
    cell: int
    line: int | None
    type: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """A finished run: the record, the errors, and which cell of the file each execution count was."""

    program: Program
    order: tuple[int, ...]
    errors: tuple[CellError, ...]
    record: Record
    tracker: Tracker

    def cell(self, count: int | None) -> int | None:
        """The file's cell that ran as `In[count]`."""
        return self.order[count - 1] if count is not None and 0 < count <= len(self.order) else count


def run(
    program: Program,
    order: tuple[int, ...] | None = None,
    *,
    timeout: float | None = None,
    progress: Callable[[Iterator[int]], Iterator[int]] = iter,
) -> Outcome:
    """Run a program's cells.

    Parameters
    ----------
    program
        What to run.
    order
        Numbers of cells from 1; by default each once.
    timeout
        Seconds that one cell may run, None: no limit.
    progress
        Wraps the iterator over the steps, for a progress bar.

    Raises
    ------
    StoppedProgram
        If a cell ran longer than `timeout`, or was interrupted from outside (Ctrl+C).

    Notes
    -----
    A timeout raises `CellTimeout` in the cell. Where a call into C does not come back to Python within
    `GRACE` seconds more, the process ends with status 2 and a message; a call that holds the GIL cannot be stopped.
    """
    order = order or tuple(range(1, len(program.cells) + 1))
    shell = _shell(program.path)
    with _output_to_stderr():
        tracker = _load(shell)
        errors = []
        for step in progress(iter(range(1, len(order) + 1))):
            cell = order[step - 1]
            with _limit(timeout, program.path, cell), _interruptible() as interrupted:
                result = shell.run_cell(program.cells[cell - 1], store_history=True, cell_id=f"cell-{cell}")
            error = result.error_before_exec or result.error_in_exec
            if interrupted.is_set():
                raise StoppedProgram(f"{program.path}: interrupted in cell {cell}")
            if isinstance(error, CellTimeout):
                raise StoppedProgram(f"{program.path}: cell {cell} ran longer than {timeout:g} s (--timeout)")
            if error is not None:
                errors.append(_described(error, step, cell, shell))
            result = error = None
        return Outcome(program, order, tuple(errors), tracker.record(), tracker)


def _shell(path: Path) -> Any:
    """A fresh shell that writes no history and imports from beside the file, as a kernel would."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    sys.path.insert(0, str(path.resolve().parent))
    os.environ.setdefault("MPLBACKEND", "agg")
    return shell


def _load(shell: Any) -> Tracker:
    from graphwidget.notebook import extension

    extension.load_ipython_extension(shell)
    tracker = extension.tracker_of(shell)
    tracker.notebook = False  # when the last cell has ended, so has the program
    return tracker


@contextmanager
def _output_to_stderr() -> Iterator[None]:
    """What the cells print goes to standard error, also from C: standard output is for the answer."""
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
    told = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield told
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        told.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield told
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _limit(seconds: float | None, path: Path, cell: int) -> Iterator[None]:
    """Raise CellTimeout in the running cell after `seconds`. Needs the main thread and POSIX timers."""
    if not seconds or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    told = f"{path}: cell {cell} ran longer than {seconds:g} s (--timeout)"

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise CellTimeout(told)

    def give_up() -> None:
        os.write(2, f"graphwidget: {told}, in a call that cannot be interrupted\n".encode())
        os._exit(2)

    before = signal.signal(signal.SIGALRM, stop)
    last = threading.Timer(seconds + GRACE, give_up)
    last.daemon = True
    last.start()
    # Again and again: the cell may catch everything.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        last.cancel()
        signal.signal(signal.SIGALRM, before)


def _described(error: BaseException, step: int, cell: int, shell: Any) -> CellError:
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else _outermost(error.__traceback__, shell)
    return CellError(step, cell, line, type(error).__name__, str(error))


def _outermost(traceback: TracebackType | None, shell: Any) -> int | None:
    """Line of the outermost frame that lies in a cell."""
    while traceback is not None:
        if traceback.tb_frame.f_globals is shell.user_global_ns and traceback.tb_frame.f_code.co_filename.startswith(
            "<ipython-input"
        ):
            return traceback.tb_lineno
        traceback = traceback.tb_next
    return None
