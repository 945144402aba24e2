"""Calls that raised: what was measured where they did, and the note under their traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable

from graphwidget.capture.cell_runs import CellRuns
from graphwidget.capture.errors import scene
from graphwidget.capture.policy import TrackerPolicy
from graphwidget.model import BackwardCall, Record, Scene

__all__ = ["Failures"]


class Failures:
    """Measures and explains errors of calls before they leave the frame that they were raised in.

    Parameters
    ----------
    cells
        The cell runs.
    record
        Returns what a diagnosis reads, now.
    explain
        Returns the lines for a call that raised. None: no error gets a note.
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
        self.scenes: dict[int, Scene] = {}  # n of a call -> what was measured
        self.notes = True  # whether errors get notes
        self.unsaid = ""  # the last note, where exceptions take none (Python 3.10)
        self._noted = 0  # errors of this cell that got a note

    def begin_cell(self) -> None:
        """A new cell gets notes again."""
        self._noted, self.unsaid = 0, ""

    def measure(self, call: BackwardCall, error: BaseException) -> None:
        """Remember the values of the variables around an error, and the grad mode."""
        frame = sys._getframe(1)
        self.scenes[call.n] = scene.of_call(frame, error, self.cells.book, self.cells.sources())
        if len(self.scenes) > self.policy.max_scenes:
            del self.scenes[next(iter(self.scenes))]

    def add_note(self, call: BackwardCall, error: BaseException) -> None:
        """Put the explanation under the traceback. Of a cell that fails again and again the first errors get one."""
        if self.explain is None or not self.notes or self._noted >= self.policy.max_notes:
            return
        self._noted += 1
        self.cells.note_grad_mode()
        self.cells.note_modules()
        text = self.explain(self.record(), call)
        if text and hasattr(error, "add_note"):
            error.add_note(text)
        elif text:
            self.unsaid = text
