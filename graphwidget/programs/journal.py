"""The runs of cells: the number of each cell of a file, and its error. Only the text of an error is kept."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from graphwidget.model import FROM_OUTSIDE, CellError, Place

# Protocol of `client` and `kernel`: the request for the answer, and the key of the file's cell in request metadata.
ANSWER = "graphwidget_answer"
CELL = "graphwidget_cell"


@dataclass(frozen=True)
class Answer:
    """The text that `graphwidget explain` writes to standard output, and its exit status.

    `stopped`: why the program was stopped from outside; empty: it was not.
    """

    text: str
    status: int
    stopped: str = ""


@dataclass
class Journal:
    """Of one shell, or of a program without one.

    `place_of` finds the line of the user's own that raised. `cells` turns an execution count into the file's cell:
    empty cells get none. `exit` is the status that a program would have ended with at its first error. `stopped`: the
    last error was raised from outside, by Ctrl+C or when its time was up.
    """

    shell: Any = None
    place_of: Callable[[BaseException], Place | None] = lambda error: None
    exit: int = 0
    errors: list[CellError] = field(default_factory=list)
    cells: dict[int, int] = field(default_factory=dict)
    steps: int = 0
    stopped: bool = False

    @contextmanager
    def ran(self, cell: int) -> Iterator[None]:
        """Record the run of a cell in the shell."""
        self.steps += 1
        before = self.shell.last_execution_result
        yield
        result = self.shell.last_execution_result
        if result is None or result is before:
            return
        if result.execution_count is not None:
            self.cells[result.execution_count] = cell
        if result.error_before_exec is not None:  # nothing of the cell ran
            error = result.error_before_exec
            self.note(error, cell, result.execution_count, getattr(error, "lineno", None))
        elif result.error_in_exec is not None:
            error = result.error_in_exec
            self.note(error, cell, result.execution_count, self._line(error.__traceback__))

    @property
    def own_errors(self) -> list[CellError]:
        """Without the one by which it was stopped, which a cell that catches everything does not raise."""
        stopped = self.stopped and self.errors and self.errors[-1].type in FROM_OUTSIDE
        return self.errors[:-1] if stopped else self.errors

    @property
    def unfinished(self) -> bool:
        """Whether the program did not come to its end. One of cells goes on after an error; `sys.exit()` is an end."""
        return self.stopped or any(error.cell is None and not error.leaves for error in self.errors)

    def cell(self, number: int | None) -> int | None:
        """The cell of the file that ran as `In[number]`."""
        return self.cells.get(number, number) if number is not None else None

    def note(self, error: BaseException, cell: int | None, number: int | None, line: int | None) -> None:
        """What a cell raised."""
        self.exit = self.exit or exit_status(error)
        leaves = isinstance(error, SystemExit) and error.code in (None, 0)
        self.errors.append(
            CellError(
                self.steps, cell, number, line, type(error).__name__, _message(error), leaves, self.place_of(error)
            )
        )

    def _line(self, traceback: TracebackType | None) -> int | None:
        """Line of the outermost frame that lies in a cell."""
        compiled = getattr(self.shell.compile, "_filename_map", {})
        while traceback is not None:
            frame = traceback.tb_frame
            if frame.f_globals is self.shell.user_global_ns and frame.f_code.co_filename in compiled:
                return traceback.tb_lineno
            traceback = traceback.tb_next
        return None


def exit_status(error: BaseException) -> int:
    """The exit status of a Python program that ends with this error.

    Examples
    --------
    >>> from graphwidget.programs.journal import exit_status
    >>> [exit_status(error) for error in (SystemExit(3), SystemExit("no data"), SystemExit(), OSError())]
    [3, 1, 0, 1]
    """
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT  # as a shell says it: the process ends by that signal
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def print_exit(cell: int, left: Sequence[int]) -> None:
    """Print to standard error that ``exit()`` ended the program early."""
    if left:
        cells = ", ".join(map(str, left))
        print(f"graphwidget: exit() in cell {cell} ended the program; not run: {cells}", file=sys.stderr)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # the user's own __str__
        return BaseException.__str__(error)
