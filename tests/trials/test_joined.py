"""Two faults, one behind the other: their fixes are joined, tried together, and shown as one."""

from dataclasses import replace

import pytest

from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import CellRun, Finding, Fix, Lineage, Place, Record, Snapshot, TextEdit, Trial
from graphwidget.trials import trial
from graphwidget.trials.account import Account, Next, account_of
from graphwidget.trials.attempt import Attempt, Ran
from graphwidget.trials.joined import joined, second_alone
from graphwidget.trials.rerun import Rerun
from graphwidget.trials.trial import Trials, try_fixes

TEXT = "for x in data:\n    net.mem.mul_(0.9)\n    loss.backward()\n"
OUT_OF_PLACE = TextEdit((2, 4), (2, 21), "net.mem = net.mem.mul(0.9)", None, "a.py")
FIRST = Fix("out_of_place", "Write to a new tensor.", True, edits=(OUT_OF_PLACE,), price="One more tensor.")
# Of the text that the first edit has written.
AFTER = Next(
    "② needs what ① freed.",
    "detach",
    "Detach it after each pass.",
    (TextEdit((4, 0), (4, 0), "    net.mem.detach_()\n", None, "a.py"),),
)
BOTH = "for x in data:\n    net.mem = net.mem.mul(0.9)\n    loss.backward()\n    net.mem.detach_()\n"
RECORD = Record(Snapshot())
GOOD, BAD = Trial(True, "ran to its end in 1.0 s"), Trial(False, "raised RuntimeError: …")


@pytest.fixture
def ran(tmp_path):
    (tmp_path / "a.py").write_text(TEXT)
    finding = Finding("inplace", "error", "…", "① needs …", call=0, fixes=(FIRST,))
    return Ran(Rerun("a.py", folder=str(tmp_path)), RECORD, [finding], [], 1, 0.1)


def test_both_changes_are_one_of_the_program_as_it_is(ran):
    fix = joined(ran, FIRST, AFTER)
    assert text_edit.apply(TEXT, fix.edits) == BOTH
    assert fix.id == "out_of_place" and not fix.verified and fix.price == "One more tensor."
    assert fix.text == (
        "Write to a new tensor. Then the next error comes: A later call needs what ① freed. So also: detach it after each pass."
    )
    assert [line for line in fix.edit if line.startswith("+")] == [
        "+ net.mem = net.mem.mul(0.9)",
        "+ net.mem.detach_()",
    ]


@pytest.mark.parametrize(
    ("begun", "said"),
    [(2, "② needs what ① freed."), (1, "A later call needs what ① freed."), (0, "A later call needs what another")],
)
def test_the_next_error_has_numbers_only_of_calls_that_the_report_lists(ran, begun, said):
    assert f"the next error comes: {said}" in joined(replace(ran, begun=begun), FIRST, AFTER).text


def test_what_is_left_without_an_error_is_no_next_error(ran):
    left = replace(AFTER, headline="Graphs pile up in `net.mem`.", error=False)
    assert "Then this is left: Graphs pile up in `net.mem`. So also: detach" in joined(ran, FIRST, left).text


def test_the_fix_of_graphs_that_pile_up_is_next_where_nothing_was_raised():
    fix = Fix("detach", "…", edits=(replace(OUT_OF_PLACE, cell=7, file=None),))
    piles = Finding("leak", "warning", "…", "Graphs pile up.", fixes=(fix,))
    other = Finding("silent", "warning", "…", "It stays flat.", fixes=(fix,))

    def following(*findings, record=RECORD):
        account = account_of(record, findings, (), begun=0, failing=0, seconds=1.0, cell_of={7: 2}.get)
        return [(one.headline, one.error, one.edits[0].cell) for one in Account.from_json(account.to_json()).next]

    assert following(other, piles) == [("Graphs pile up.", False, 2)]
    assert following(replace(other, severity="error"), piles) == [("It stays flat.", True, 2)]
    assert following(other) == [("It stays flat.", False, 2)]
    cut = replace(other, cut_at=Place(None, 4, ""))
    assert following(cut) == []  # that the line is the one to change was not measured
    assert following(cut, record=replace(RECORD, lineage=Lineage(None))) == [("It stays flat.", False, 2)]


def test_changes_of_two_files_are_shown_under_their_names(ran, tmp_path):
    (tmp_path / "b.py").write_text("opt.step()\n")
    after = replace(AFTER, edits=(TextEdit((2, 0), (2, 0), "net.mem.detach_()\n", None, "b.py"),))
    fix = joined(ran, FIRST, after)
    assert [line for line in fix.edit if line.endswith(":")] == ["  a.py:", "  b.py:"]
    assert fix.edit.index("  b.py:") < fix.edit.index("+ net.mem.detach_()")


def test_cells_keep_the_numbers_of_the_record():
    record = replace(RECORD, runs={0: CellRun(0, 7, TEXT)})
    ran = Ran(Rerun("a.ipynb", cells=["", TEXT], order=[1, 2]), record, [], [], 1, 0.1, cell_of={7: 2}.get)
    first = replace(FIRST, edits=(replace(OUT_OF_PLACE, cell=7, file=None),))
    after = replace(AFTER, edits=(replace(AFTER.edits[0], cell=2, file=None),))
    fix = joined(ran, first, after)
    assert {edit.cell for edit in fix.edits} == {7} and text_edit.apply(TEXT, fix.edits) == BOTH


@pytest.mark.parametrize(
    "after",
    [
        replace(AFTER, id="allow_unused"),  # changes what the program means
        replace(AFTER, edits=(TextEdit((9, 0), (9, 0), "x", None, "a.py"),)),
        replace(AFTER, edits=(TextEdit((1, 0), (1, 0), "x", None, "b.py"),)),
    ],
)
def test_what_does_not_fit_is_not_joined(ran, after):
    assert joined(ran, FIRST, after) is None


def test_what_did_not_help_is_not_put_there_once_more(ran):
    again = TextEdit((3, 0), (3, 0), "    y = net(x)\n", None, "a.py")
    assert joined(ran, replace(FIRST, edits=(again,)), replace(AFTER, edits=(again,))) is None


def tried(monkeypatch, ran, *answers):
    """The fixes after trials that end like this, and what was tried."""
    left, asked = list(answers), []

    def attempt(_ran, _finding, fix, *_):
        asked.append(fix)
        return left.pop(0)

    monkeypatch.setattr(trial, "attempt", attempt)
    return try_fixes(ran, Trials())[0].fixes, asked


def test_the_fix_of_the_next_error_is_added_where_none_passed(monkeypatch, ran):
    (fix,), asked = tried(monkeypatch, ran, Attempt(BAD, 0.1, (AFTER,)), Attempt(GOOD, 0.1), Attempt(BAD, 0.1))
    assert fix.verified and text_edit.apply(TEXT, fix.edits) == BOTH
    assert [len(one.edits) for one in asked] == [1, 2, 1]


def test_what_was_added_is_the_fix_if_it_suffices_alone(monkeypatch, ran):
    first = replace(FIRST, edits=(TextEdit((2, 0), (2, 0), "    net.mem = net.mem.clone()\n", None, "a.py"),))
    ran.findings[0] = replace(ran.findings[0], fixes=(first,))
    after = replace(AFTER, price="`w` gets no gradient from In[1], line 4.", text="Detach it (In[1], line 4).")
    (fix,), _ = tried(monkeypatch, ran, Attempt(BAD, 0.1, (after,)), Attempt(GOOD, 0.1), Attempt(GOOD, 0.1))
    assert (fix.id, fix.text, fix.price) == ("detach", "Detach it.", "`w` gets no gradient from that call.")
    assert text_edit.apply(TEXT, fix.edits) == TEXT.replace(
        "loss.backward()\n", "net.mem.detach_()\n    loss.backward()\n"
    )


def test_what_was_added_is_no_fix_alone_if_a_leaf_then_loses_its_gradient(monkeypatch, ran):
    both, alone = Attempt(GOOD, 0.1, later=("a", "b")), Attempt(GOOD, 0.1, later=("a",))
    (fix,), _ = tried(monkeypatch, ran, Attempt(BAD, 0.1, (AFTER,)), both, alone)
    assert fix.id == "out_of_place" and text_edit.apply(TEXT, fix.edits) == BOTH


def test_what_changes_what_the_first_has_written_is_not_tried_alone(ran):
    inside = replace(AFTER, edits=(TextEdit((2, 10), (2, 11), " += ", None, "a.py"),))
    assert second_alone(ran, FIRST, inside) is None


def test_a_fix_that_passes_alone_is_left_as_it_is_and_the_one_that_failed_is_not_shown(monkeypatch, ran):
    second = replace(FIRST, id="clone_before_inplace")
    ran.findings[0] = replace(ran.findings[0], fixes=(FIRST, second))
    fixes, asked = tried(monkeypatch, ran, Attempt(BAD, 0.1, (AFTER,)), Attempt(GOOD, 0.1))
    assert [fix.id for fix in fixes] == ["clone_before_inplace"] and len(asked) == 2


def test_what_does_not_help_together_is_shown_alone(monkeypatch, ran):
    (fix,), asked = tried(monkeypatch, ran, Attempt(BAD, 0.1, (AFTER,)), Attempt(BAD, 0.1))
    assert fix.text == FIRST.text and fix.tried == BAD and len(asked) == 2
    assert not fix.edits  # no machine is to make what was seen to fail


def test_a_program_of_endless_errors_is_left(monkeypatch, ran):
    more = [replace(AFTER, edits=(TextEdit((1, 0), (1, 0), f"x{k} = 0\n", None, "a.py"),)) for k in range(9)]
    _, asked = tried(monkeypatch, ran, *(Attempt(BAD, 0.1, (one,)) for one in more))
    assert len(asked) == 4


def test_of_lines_that_left_the_graph_the_one_that_passed_is_shown(monkeypatch, ran):
    lines = [replace(FIRST, edits=(replace(OUT_OF_PLACE, new=new),)) for new in "abcd"]
    ran.findings[0] = replace(ran.findings[0], kind="no_grad", fixes=tuple(lines))
    partly = replace(BAD, partly=True)
    (fix,), asked = tried(monkeypatch, ran, Attempt(partly, 0.1), Attempt(GOOD, 0.1))
    assert fix.edits[0].new == "b" and len(asked) == 2


def test_an_account_with_fixes_crosses_as_text():
    account = Account(next=(AFTER,))
    assert Account.from_json(account.to_json()) == account
