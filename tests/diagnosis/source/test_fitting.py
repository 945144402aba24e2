"""Whether an edit can be made: the lines are there, the cells still parse, and names are known where they are read."""

import pytest

from graphwidget.diagnosis.source import fitting, syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import CellRun, Fix, Record, Snapshot, TextEdit

CELLS = {
    1: "import torch\nw = torch.ones(2)\n\ndef step(x, k=1):\n    y = x * w\n    return y.sum()\n",
    2: "h = w.exp()\nfor i in range(2):\n    loss = step(h)\n    loss.backward()\n",
    3: "done = True\n",
}


def after(spot, *new):
    return text_edit.insert_after(spot[0], CELLS[spot[0]], spot[1], new)


def before(spot, *new):
    return text_edit.insert_before(spot[0], CELLS[spot[0]], spot[1], new)


def instead(spot, new):
    return text_edit.replace_line(spot[0], CELLS[spot[0]], spot[1], new)


def without(spot):
    statement = syntax.beginning_at(CELLS[spot[0]], spot[1])[0]
    return text_edit.remove(spot[0], CELLS[spot[0]], statement)


@pytest.mark.parametrize(
    "edits",
    [
        after((2, 4), "h = h.detach()"),
        before((2, 3), "h = w.exp()"),
        (*without((2, 1)), *before((2, 3), "h = w.exp()")),
        instead((1, 5), "y = x * w.detach()"),
        before((1, 5), "z = [one * k for one in (x, w, h)]"),
        without((2, 4)),
        instead((3, 1), "done = loss"),
    ],
)
def test_edits_that_leave_a_program(edits):
    assert edits and fitting.possible(CELLS, edits)


@pytest.mark.parametrize(
    "edits",
    [
        instead((2, 1), "h = (w.exp()"),
        before((2, 1), "h = loss.detach()"),
        before((2, 1), "h = done"),
        before((1, 5), "x = y"),
        before((1, 6), "w = w.detach()"),
        after((2, 4), "y = y.detach()"),
        (*instead((2, 1), "h = 1"), *instead((2, 1), "h = 2")),
        (TextEdit((1, 0), (1, 0), "h = 1\n", 9),),
        (TextEdit((7, 0), (7, 0), "h = 1\n", 3),),
    ],
)
def test_edits_that_do_not(edits):
    assert edits and not fitting.possible(CELLS, edits)


def test_what_no_text_binds_comes_from_elsewhere():
    text = "y = f(given)\n"
    assert fitting.possible({1: text}, text_edit.insert_after(1, text, 1, ["given = given.detach()"]))


def test_a_fix_whose_edit_does_not_fit_is_advice():
    record = Record(Snapshot(), runs={0: CellRun(0, 1, CELLS[2])})
    edits = text_edit.insert_after(1, CELLS[2], 4, ["h = h.detach()"])
    good = fitting.with_display(record, Fix("detach", "Cut.", True, (1, 4), edits=edits))
    assert good.edit == ("  loss.backward()", "+ h = h.detach()")
    assert fitting.checked(record, good) == good
    for none in ((), (TextEdit((9, 0), (9, 0), "h = h.detach()", 1),), (TextEdit((1, 0), (1, 0), "h = 1", 2),)):
        told = fitting.checked(record, Fix("detach", "Cut.", True, (1, 4), edits=none))
        assert (told.verified, told.edits) == (False, ())
    again = Fix("rerun_forward_cell", "Run In[1] again.", True, (1, 1), by_hand=True)
    assert fitting.checked(record, again) == again


def test_a_file_does_not_know_the_names_of_another():
    texts = {-2: "net = make()\nfit(net)\n", -4: "def fit(model):\n    model.loss().backward()\n"}
    own, others = (text_edit.insert_after(-4, texts[-4], 2, [f"{n}.h = {n}.h.detach()"]) for n in ("model", "net"))
    assert fitting.possible(texts, others)
    assert fitting.possible(texts, own, files={-2, -4})
    assert not fitting.possible(texts, others, files={-2, -4})
