"""The answer of `graphwidget explain` for a program that has run, and its exit status.

All imports are at the top: a program may later change where Python looks for modules, or a module itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.diagnosis.verdict import verdict
from graphwidget.exports.formats import ANSWERS
from graphwidget.exports.texts import texts_of
from graphwidget.model import Drawing, Finding, Record
from graphwidget.programs.journal import Answer, Journal
from graphwidget.programs.target import Start
from graphwidget.render.program import ProgramRun
from graphwidget.trials.asked import Asked, Tried, memory_of_this_process
from graphwidget.trials.attempt import Ran

__all__ = ["STOPPED", "answer"]

STOPPED = "The program was stopped before its end. This is what it did until then."


def answer(
    format_: str,
    start: Start,
    tracker: Tracker,
    journal: Journal,
    file: str | None = None,
    asked: Asked | None = None,
) -> Answer:
    """The answer for a program that has run. Status 1: the program raised, or a finding has severity error.

    Parameters
    ----------
    file
        Where the target's code is, if the target is not that file itself.
    asked
        Whether fixes are tried.

    Raises
    ------
    ImportError
        If a package that the format needs is not installed.
    """
    record = tracker.record()
    findings: Sequence[Finding] = tracker.findings()
    if journal.unfinished:
        record = replace(record, unfinished=True)
        findings = diagnose(record)
    tried = Tried(tuple(findings))
    if asked is not None:
        tried = asked.tried(_ran(asked, record, findings, tracker, journal))
        findings = tried.findings

    def drawing() -> Drawing:
        return replace(tracker.drawing(), findings=tuple(findings))

    run = ProgramRun(
        file or start.target,
        torch.__version__.split("+")[0],
        journal.errors,
        tracker.calls,
        findings,
        verdict(record, findings),
        drawing,
        journal.cell,
        target=start.target,
        argv=start.arguments,
        exit=journal.exit,
        texts=texts_of(record),
        notes=(*([STOPPED] if journal.stopped else []), *tracker.own_code.notes(), *tried.notes),
        not_tried=tried.why_not,
    )
    raised = any(not error.leaves for error in journal.errors)
    wrong = any(finding.severity == "error" for finding in findings)
    return Answer(ANSWERS[format_](run), int(raised or wrong))


def _ran(asked: Asked, record: Record, findings: Sequence[Finding], tracker: Tracker, journal: Journal) -> Ran:
    """The run that a trial mends."""
    return Ran(
        asked.rerun,
        record,
        findings,
        journal.own_errors,
        tracker.log.count,
        time.monotonic() - asked.rerun.began,
        events=tracker.events,
        memory=memory_of_this_process(),
        cell_of=journal.cell,
        zero_grads=tracker.write_recorder.zero_grads(),
        stopped=journal.stopped,
    )
