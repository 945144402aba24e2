"""The answer of `graphwidget explain` for a program that has run, and its exit status.

All imports are at the top: a program may later change where Python looks for modules, or a module itself.
"""

from __future__ import annotations

import torch

from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.verdict import verdict
from graphwidget.exports.formats import ANSWERS
from graphwidget.exports.texts import texts_of
from graphwidget.programs.journal import Answer, Journal
from graphwidget.programs.target import Start
from graphwidget.render.program import ProgramRun

__all__ = ["answer"]


def answer(format_: str, start: Start, tracker: Tracker, journal: Journal, file: str | None = None) -> Answer:
    """The answer for a program that has run. Status 1: the program raised, or a finding has severity error.

    Parameters
    ----------
    file
        Where the target's code is, if the target is not that file itself.

    Raises
    ------
    ImportError
        If a package that the format needs is not installed.
    """
    findings = tracker.findings()
    record = tracker.record()
    run = ProgramRun(
        file or start.target,
        torch.__version__.split("+")[0],
        journal.errors,
        tracker.calls,
        findings,
        verdict(record, findings),
        tracker.drawing,
        journal.cell,
        target=start.target,
        argv=start.arguments,
        exit=journal.exit,
        texts=texts_of(record),
    )
    raised = any(not error.leaves for error in journal.errors)
    wrong = any(finding.severity == "error" for finding in findings)
    return Answer(ANSWERS[format_](run), int(raised or wrong))
