"""Edits of program text: what is added to a call, what is detached."""

import pytest

from graphwidget.diagnosis.source import edits


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("loss.backward()", "loss.backward(retain_graph=True)"),
        ("g, = torch.autograd.grad(y[i], x)", "g, = torch.autograd.grad(y[i], x, retain_graph=True)"),
        ("loss.backward(retain_graph=False)", "loss.backward(retain_graph=True)"),
        ("[l.backward() for l in losses]", "[l.backward(retain_graph=True) for l in losses]"),
        ("größe.backward(); x = (1)", "größe.backward(retain_graph=True); x = (1)"),
    ],
)
def test_a_keyword_is_added_to_the_call_that_runs_backward(line, changed):
    assert edits.with_keyword(line, "retain_graph=True") == (f"- {line}", f"+ {changed}")


@pytest.mark.parametrize("line", ["", "x = (", "step()", "loss.backward(retain_graph=True)"])
def test_a_line_without_such_a_call_gives_no_edit(line):
    assert edits.with_keyword(line, "retain_graph=True") == ()


def test_only_the_right_side_of_an_assignment_reads_a_name():
    assert edits.with_name("y = f(y, my, y.shape)", "y", "y.detach()") == (
        "- y = f(y, my, y.shape)",
        "+ y = f(y.detach(), my, y.detach().shape)",
    )
    assert edits.with_name("y = 1", "y", "y.detach()") == ()


def test_lines_written_after_a_statement_follow_its_last_line():
    cell = "f(\n    1,\n)\nfor x in y: g(x)\na(); b(); c(\n)\n"
    assert edits.after(cell, 1, ["h = 1"]) == ("  f(", "  1,", "  )", "+ h = 1")
    assert edits.after(cell, 4, ["h = 1"]) == ()
    assert edits.after(cell, 5, ["h = 1"]) == ("  a(); b(); c(", "  )", "+ h = 1")
