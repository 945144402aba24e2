"""Whether a program runs again without being asked, and what is said where it does not."""

import pytest
import records

from graphwidget.model import Finding, Fix, Record, Snapshot, StarvedParameters, TextEdit
from graphwidget.trials import lineage
from graphwidget.trials.asked import Asked
from graphwidget.trials.attempt import Ran
from graphwidget.trials.rerun import Rerun

STARVED = (StarvedParameters(records.place(1, 9), ("net.fc.weight",), 3, 8),)
FIX = Fix("detach", "cut the graph", edits=(TextEdit((4, 0), (4, 0), "h = h.detach()\n", None, "train.py"),))
FINDINGS = (Finding("second_backward", "error", "…", "② needs what ① freed.", fixes=(FIX,)),)


class Writes:
    """Effects of a program that writes a file."""

    def end(self):
        return "the program writes files (best.pt)"


def said(findings=(), wanted=None, starved=STARVED):
    ran = Ran(Rerun("train.py"), Record(Snapshot(), starved=starved), findings, (), 1, 0.5)
    return Asked(wanted, ran.rerun, Writes()).tried(ran)[1]


def test_fixes_that_were_not_tried_are_said():
    assert said(FINDINGS) == (
        "No fix was tried: the program writes files (best.pt), and that would happen again. "
        "To try them all the same: graphwidget explain --try train.py"
    )
    assert said(FINDINGS, wanted=False) == "No fix was tried (--no-try)."


def test_of_a_program_without_fixes_it_is_said_what_was_not_measured():
    """A backbone's head that is not used gets no gradient: no finding, and no fix that could be tried."""
    assert said() == (
        "Which lines keep gradients from `net.fc.weight` was not measured: the program writes files (best.pt), and that "
        "would happen again. To measure it all the same: graphwidget explain --try train.py"
    )


@pytest.mark.parametrize("wanted", [None, False])
def test_nothing_is_said_where_nothing_would_be_tried(wanted):
    assert said(starved=(), wanted=wanted) == ""


@pytest.mark.parametrize(("errors", "words"), [((), ""), ((None,), "Whether a backward hook was never called")])
def test_of_hooks_alone_something_is_said_only_if_the_program_failed(monkeypatch, errors, words):
    monkeypatch.setattr(lineage, "may_have_unrun_hooks", lambda record: True)
    ran = Ran(Rerun("train.py"), Record(Snapshot()), (), errors, 1, 0.5)
    assert Asked(None, ran.rerun, Writes()).tried(ran)[1].startswith(words or "\0") is bool(words)
