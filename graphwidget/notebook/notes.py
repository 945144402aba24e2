"""The note under a traceback: of a backward call that raised, or of a cell whose error is PyTorch's."""

from __future__ import annotations

from graphwidget.diagnosis.diagnose import of_call, of_run
from graphwidget.model import BackwardCall, CellRun, Record
from graphwidget.render import report


def explain_call(record: Record, call: BackwardCall, more: str = "%graphwidget explain") -> str:
    """The findings of a call as lines of text; empty if there are none. `more`: the command that shows the rest."""
    return "\n".join(report.note(finding, more) for finding in of_call(record, call))


def explain_run(record: Record, run: CellRun, more: str = "%graphwidget explain") -> str:
    """What is known of a cell's error that no call raised, as lines of text; empty if that is nothing."""
    finding = of_run(record, run)
    return report.note(finding, more) if finding is not None else ""
