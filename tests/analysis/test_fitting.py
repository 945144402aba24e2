"""Whether an edit can be made: the lines are there, the cells still parse, and names are known where they are read."""

import pytest

from graphwidget.analysis import fitting
from graphwidget.model import CellRun, Fix, Record, Snapshot

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
    good = Fix("detach", "Cut.", True, (1, 4), "", ("  loss.backward()", "+ h = h.detach()"))
    assert fitting.checked(record, good) == good
    for edit in ((), ("  nowhere()", "+ h = h.detach()")):
        told = fitting.checked(record, Fix("detach", "Cut.", True, (1, 4), "", edit))
        assert (told.verified, told.edit) == (False, ())
    again = Fix("rerun_forward_cell", "Run In[1] again.", True, (1, 1))
    assert fitting.checked(record, again) == again
