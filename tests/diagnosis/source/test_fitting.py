"""Whether an edit can be made: the lines are there, the cells still parse, and names are known where they are read."""

import pytest

from graphwidget.diagnosis.source import fitting, text_edit
from graphwidget.model import CellRun, Fix, Record, Snapshot, TextEdit

CELLS = {
    1: "import torch\nw = torch.ones(2)\n\ndef step(x, k=1):\n    y = x * w\n    return y.sum()\n",
    2: "h = w.exp()\nfor i in range(2):\n    loss = step(h)\n    loss.backward()\n",
    3: "done = True\n",
}


def fits(at, *edit):
    return fitting.fits(CELLS, at, edit)


@pytest.mark.parametrize(
    ("at", "edit"),
    [
        ((2, 4), ["  loss.backward()", "+ h = h.detach()"]),
        ((2, 3), ["+ h = w.exp()", "  loss = step(h)"]),
        ((2, 1), ["- h = w.exp()", "- for i in range(2):", "+ for i in range(2):", "+     h = w.exp()"]),
        ((1, 5), ["- y = x * w", "+ y = x * w.detach()"]),
        ((1, 5), ["+ z = [one * k for one in (x, w, h)]", "  y = x * w"]),
        ((2, 4), ["- loss.backward()"]),
        ((2, 4), ["  loss.backward()", "- done = True", "+ done = loss"]),
    ],
)
def test_edits_that_leave_a_program(at, edit):
    assert fits(at, *edit)


@pytest.mark.parametrize(
    ("at", "edit"),
    [
        ((2, 4), ["  loss.backwards()", "+ h = h.detach()"]),
        ((2, 1), ["+ h = (w.exp()", "  h = w.exp()"]),
        ((2, 1), ["+ h = loss.detach()", "  h = w.exp()"]),
        ((2, 1), ["+ h = done", "  h = w.exp()"]),
        ((1, 5), ["+ x = y", "  y = x * w"]),
        ((1, 6), ["+ w = w.detach()", "  return y.sum()"]),
        ((2, 4), ["  loss.backward()", "+ y = y.detach()"]),
        ((2, 1), ["- h = w.exp()"]),
        ((9, 1), ["+ h = 1"]),
        ((3, 7), ["+ h = 1"]),
    ],
)
def test_edits_that_do_not(at, edit):
    assert not fits(at, *edit)


def test_what_no_text_binds_comes_from_elsewhere():
    assert fitting.fits({1: "y = f(given)\n"}, (1, 1), ("  y = f(given)", "+ given = given.detach()"))


def test_a_fix_whose_edit_does_not_fit_is_advice():
    record = Record(Snapshot(), runs={0: CellRun(0, 1, CELLS[2])})
    edits = text_edit.insert_after(1, CELLS[2], 4, ["h = h.detach()"])
    good = fitting.with_edits(record, Fix("detach", "Cut.", True, (1, 4), edits=edits))
    assert good.edit == ("  loss.backward()", "+ h = h.detach()")
    assert fitting.checked(record, good) == good
    for none in ((), (TextEdit((9, 0), (9, 0), "h = h.detach()", 1),), (TextEdit((1, 0), (1, 0), "h = 1", 2),)):
        told = fitting.checked(record, Fix("detach", "Cut.", True, (1, 4), edits=none))
        assert (told.verified, told.edits) == (False, ())
    again = Fix("rerun_forward_cell", "Run In[1] again.", True, (1, 1), by_hand=True)
    assert fitting.checked(record, again) == again


TWO = {1: "a = f()\na.add_(1)\nb = g()\nb.mul_(2)\n", 2: "if b:\n    a.add_(1)\nc = 1\n"}


def test_edits_of_several_lines_are_one_edit_in_the_order_of_the_text():
    later = ((1, 4), ("- b.mul_(2)", "+ b = b.mul(2)"))
    in_front = ((1, 2), ("+ a = a.clone()", "  a.add_(1)"))
    at, edit = fitting.joined(TWO, [later, in_front])
    assert at == (1, 2) and edit == ("+ a = a.clone()", "  a.add_(1)", *later[1])
    at, edit = fitting.joined(TWO, [in_front, ((2, 2), in_front[1])])
    assert fitting.apply(TWO, at, edit).texts[2] == "if b:\n    a = a.clone()\n    a.add_(1)\nc = 1"


def test_an_edit_that_would_find_another_line_first_is_not_joined():
    one, other = ((1, 1), ("- a = f()", "+ a = 1")), ((2, 2), ("- a.add_(1)", "+ a = a.add(1)"))
    assert fitting.joined(TWO, [one, other]) is None
    assert fitting.joined(TWO, [one, ((2, 3), ())]) is None
