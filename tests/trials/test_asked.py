"""Whether a program runs again without being asked, and what is said where it does not."""

import pytest
import records

from graphwidget.model import Finding, Fix, Record, Snapshot, StarvedParameters, TextEdit
from graphwidget.trials import lineage
from graphwidget.trials.asked import Asked
from graphwidget.trials.attempt import Ran
from graphwidget.trials.effects import Done
from graphwidget.trials.files.left import Left, stamp_of
from graphwidget.trials.rerun import Rerun

STARVED = (StarvedParameters(records.place(1, 9), ("net.fc.weight",), 3, 8),)
FIX = Fix("detach", "cut the graph", edits=(TextEdit((4, 0), (4, 0), "h = h.detach()\n", None, "train.py"),))
FINDINGS = (Finding("second_backward", "error", "…", "② needs what ① freed.", fixes=(FIX,)),)


class Starts:
    """Effects of a program that starts another one, or only writes files."""

    def __init__(self, done):
        self.done = done

    def end(self):
        return self.done


STARTED = Done("the program starts other programs (git)", only_files=False)


def said(findings=(), wanted=None, starved=STARVED, done=STARTED):
    ran = Ran(Rerun("train.py"), Record(Snapshot(), starved=starved), findings, (), 1, 0.5)
    return Asked(wanted, ran.rerun, Starts(done)).tried(ran).why_not


def test_fixes_that_were_not_tried_are_said():
    assert said(FINDINGS) == (
        "No fix was tried: the program starts other programs (git), and that would happen again. "
        "To try them all the same: graphwidget explain --try train.py"
    )
    assert said(FINDINGS, wanted=False) == "No fix was tried (--no-try)."


def test_of_a_program_without_fixes_it_is_said_what_was_not_measured():
    """A backbone's head that is not used gets no gradient: no finding, and no fix that could be tried."""
    assert said() == (
        "Which lines keep gradients from `net.fc.weight` was not measured: the program starts other programs (git), and "
        "that would happen again. To measure it all the same: graphwidget explain --try train.py"
    )


@pytest.mark.parametrize("wanted", [None, False])
def test_nothing_is_said_where_nothing_would_be_tried(wanted):
    assert said(starved=(), wanted=wanted) == ""


@pytest.mark.parametrize(("errors", "words"), [((), ""), ((None,), "Whether a backward hook was never called")])
def test_of_hooks_alone_something_is_said_only_if_the_program_failed(monkeypatch, errors, words):
    monkeypatch.setattr(lineage, "may_have_unrun_hooks", lambda record: True)
    ran = Ran(Rerun("train.py"), Record(Snapshot()), (), errors, 1, 0.5)
    assert Asked(None, ran.rerun, Starts(STARTED)).tried(ran).why_not.startswith(words or "\0") is bool(words)


WRITES = "the program writes files (best.pt)"


def test_files_that_are_too_large_to_be_put_back_are_said():
    large = Done(WRITES, left=Left(".", {"/best.pt": (700_000_000, 1)}))
    assert said(FINDINGS, done=large).startswith(
        "No fix was tried: the program writes files (best.pt); they have 700 MB, and of more than 512 MB no copy "
        "is made. To try them all the same: "
    )


def test_files_that_somebody_else_has_changed_since_are_said(tmp_path):
    """Another program uses them: what it writes cannot be told from what a trial does."""
    file = tmp_path / "log.txt"
    file.write_text("of the run")
    done = Done(WRITES, left=Left(str(tmp_path), {str(file): stamp_of(str(file))}))
    file.write_text("of somebody else")
    assert "best.pt); `log.txt` has changed since it ended. To try" in said(FINDINGS, done=done)
