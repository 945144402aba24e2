"""Calls that raised: their measured scenes, and the notes under their tracebacks."""

from __future__ import annotations

import sys
from collections.abc import Callable

from graphwidget.capture.cell_runs import CellRuns
from graphwidget.capture.errors import scene
from graphwidget.capture.policy import TrackerPolicy
from graphwidget.model import BackwardCall, Record, Scene

__all__ = ["Failures"]


class Failures:
    """Measures and explains the errors of calls before they leave the frame that raised them.

    Parameters
    ----------
    cells
        The cell runs.
    record
        Returns the present record, the input of a diagnosis.
    explain
        Returns the text of the note for a call that raised. None: no error gets a note.
    """

    def __init__(
        self,
        policy: TrackerPolicy,
        cells: CellRuns,
        *,
        record: Callable[[], Record],
        explain: Callable[[Record, BackwardCall], str] | None,
    ) -> None:
        self.policy, self.cells, self.record, self.explain = policy, cells, record, explain
        self.scenes: dict[int, Scene] = {}  # n of a call -> its measured scene
        self.notes = True  # whether errors get notes
        self.unsaid = ""  # the last note that an exception could not take (Python 3.10)
        self._notes_added = 0  # number of notes for errors of this cell

    @property
    def explained(self) -> bool:
        """Whether an error of the running cell has got a note."""
        return self._notes_added > 0

    def begin_cell(self) -> None:
        """Begin a new cell, whose errors get notes again."""
        self._notes_added, self.unsaid = 0, ""

    def measure(self, call: BackwardCall, error: BaseException) -> None:
        """Record the scene of an error: the values of the variables, and the grad mode."""
        frame = sys._getframe(1)
        self.scenes[call.n] = scene.of_call(frame, error, self.cells.book, self.cells.sources())
        if len(self.scenes) > self.policy.max_scenes:
            del self.scenes[next(iter(self.scenes))]

    def add_note(self, call: BackwardCall, error: BaseException) -> None:
        """Put the explanation under the traceback. In a cell with many errors, only the first ones get one."""
        if self.explain is None or not self.notes or self._notes_added >= self.policy.max_notes:
            return
        self._notes_added += 1
        self.cells.note_grad_mode()
        self.cells.note_modules()
        text = self.explain(self.record(), call)
        if text and hasattr(error, "add_note"):
            error.add_note(text)
        elif text:
            self.unsaid = text
