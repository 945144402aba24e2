"""The note under the traceback of a backward call that raised."""

from __future__ import annotations

from graphwidget.diagnosis.diagnose import of_call
from graphwidget.model import BackwardCall, Record
from graphwidget.render import report


def explain_call(record: Record, call: BackwardCall, more: str = "%graphwidget explain") -> str:
    """The findings of a call as lines of text; empty if there are none. `more`: the command that shows the rest."""
    return "\n".join(report.note(finding, more) for finding in of_call(record, call))
