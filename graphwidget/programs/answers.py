"""The answer of `graphwidget explain` for a program that has run, and its exit status.

What it needs is imported when this is: a program may have changed where Python looks for modules, or a module itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps

import torch

from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.verdict import verdict
from graphwidget.model import Finding, Verdict
from graphwidget.programs.journal import Answer, Journal
from graphwidget.render import picture, report

__all__ = ["answer"]


def answer(format_: str, file: str, tracker: Tracker, journal: Journal) -> Answer:
    """What there is to say of what ran. Status 1: the program raised, or a finding has severity error.

    Raises
    ------
    ImportError
        If what the format needs is not installed.
    """
    findings = tracker.findings()
    left = verdict(tracker.record(), findings)
    raised = any(not error.leaves for error in journal.errors)
    wrong = any(finding.severity == "error" for finding in findings)
    return Answer(_FORMATS[format_](file, tracker, journal, findings, left), int(raised or wrong))


def _json(file: str, tracker: Tracker, journal: Journal, findings: Sequence[Finding], left: Verdict) -> str:
    errors = [{key: getattr(e, key) for key in ("step", "cell", "line", "type", "message")} for e in journal.errors]
    document = report.document(file, _version(), errors, tracker.calls, findings, left, journal.cell)
    return dumps(document, ensure_ascii=False, indent=1)


def _text(file: str, tracker: Tracker, journal: Journal, findings: Sequence[Finding], left: Verdict) -> str:
    errors = [(e.number, e.line, e.type, e.message) for e in journal.errors]
    return report.text(file, _version(), errors, tracker.calls, findings, left).rstrip("\n")


def _html(file: str, tracker: Tracker, _journal: Journal, _findings: Sequence[Finding], left: Verdict) -> str:
    return picture.to_html(tracker.drawing(), title=file, verdict=left)


def _version() -> str:
    return torch.__version__.split("+")[0]


_FORMATS = {"json": _json, "text": _text, "html": _html}
