"""Texts that have to fit are cut between words; of a change, what changes is never what is cut."""

import pytest

from graphwidget.diagnosis.wording import short
from graphwidget.model import Finding, Fix, cut, cut_edit
from graphwidget.render import report

TORCH = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have been freed)."
)


@pytest.mark.parametrize("most", range(12, 120))
def test_no_word_is_cut(most):
    told = cut(TORCH, most)
    assert len(told) <= most
    assert told == TORCH or (told.endswith(" …") and f"{TORCH} ".startswith(told.removesuffix("…")))


def test_a_word_that_does_not_fit_at_all_is_cut():
    assert cut("a" * 30, 10) == "a" * 9 + "…"
    assert cut("x = " + "a" * 30, 10) == "x = aaaaa…"


def test_what_fits_stays():
    assert cut("abc def", 7) == "abc def" and cut("", 5) == ""


LONG = "n = N(True); loss = checkpoint(n, x, use_reentrant=True).sum() + penalty(n); optimizer.zero_grad(); "


@pytest.mark.parametrize("most", [40, 60, 100])
@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        (LONG + "loss.backward()", LONG + "loss.backward(retain_graph=True)", "retain_graph"),
        ("loss.backward(); " + LONG, "loss.backward(retain_graph=True); " + LONG, "retain_graph"),
        (LONG + "y = h; " + LONG, LONG + "y = h.detach(); " + LONG, ".detach()"),
    ],
    ids=["at the end", "at the beginning", "in the middle"],
)
def test_of_a_changed_line_the_change_is_visible(old, new, changed, most):
    first, second = cut_edit([f"- {old}", f"+ {new}"], most)
    assert changed in second and changed not in first
    assert first[:2] == "- " and second[:2] == "+ " and max(map(len, (first, second))) <= most


def test_changes_far_from_each_other_and_the_end_of_a_new_line_are_visible():
    old, new = cut_edit([f"- m = {LONG * 2}x", f"+ m = ({LONG * 2}x).detach()"], 60)
    assert old.startswith("- m = n = N") and len(old) <= 60 and len(new) <= 60
    assert new.startswith("+ m = (n = N") and new.endswith("x).detach()")
    (line,) = cut_edit([f"+ net.cache = ({LONG}, y.detach())"], 60)
    assert line.startswith("+ net.cache = (n") and line.endswith("y.detach())") and len(line) <= 60


def test_several_changes_of_one_edit_are_each_visible():
    edit = [f"- {LONG}a", f"- {LONG}b", f"+ {LONG}aa", f"+ {LONG}bb", f"  {LONG}", "+ z = 1"]
    cut_lines = cut_edit(edit, 60)
    assert [line.split()[-1] for line in cut_lines[:4]] == ["a", "b", "aa", "bb"], cut_lines
    assert cut_lines[4].startswith("  n = N") and cut_lines[5] == "+ z = 1"


def test_notes_and_reports_show_the_change_of_a_long_line():
    fix = Fix(
        "retain", "Keep it.", True, edit=(f"- {LONG}loss.backward()", f"+ {LONG}loss.backward(retain_graph=True)")
    )
    finding = Finding("second_backward", "error", "It was freed.", "Freed.", fixes=(fix,))
    for told in (report.note(finding), "\n".join(report.finding_lines(finding))):
        assert "loss.backward(retain_graph=True)" in told
        assert max(map(len, told.splitlines())) <= 100


def test_code_in_a_sentence_is_cut_between_words():
    assert short("state = step(state, batch, lengths, dropout=0.5, training=True, mask=m)") == (
        "`state = step(state, batch, lengths, dropout=0.5, …`"
    )
