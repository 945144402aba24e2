"""Whether a line runs between two calls."""

import pytest
from records import place

from graphwidget.diagnosis.reuse.lines_between import runs_backward, runs_between
from graphwidget.diagnosis.reuse.reuse import Reuse
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.model import BackwardCall, CellRun, Record, Snapshot

CELL = "for x in data:\n    h = f(x, h)\n    h.sum().backward()\n    log(h)\nprint(h)\n"
TRAINER = "class T:\n    def fit(self):\n        for x in data:\n            self.step(x)\n    def step(self, x):\n        self.h = f(x, self.h)\n        self.h.sum().backward()\n        self.log()\nT().fit()\nprint(1)\n"
FOREIGN = "from lib import fit\ndef main():\n    fit(net)\n    print(net.h)\nmain()\nprint(2)\n"


def setting(text, first, second):
    calls = [BackwardCall(n, one, "backward", False, False, (), ()) for n, one in enumerate((first, second))]
    record = Record(Snapshot(), tuple(calls), runs={0: CellRun(0, 1, text, "c1")})
    return Setting(Reuse(record, calls[1], calls[0], Snapshot()))


def reached(text, first, second):
    """The lines of a cell that run between two calls."""
    two_calls = setting(text, first, second)
    return [n for n in range(1, len(text.splitlines()) + 1) if runs_between(two_calls, (1, n))]


def test_the_body_of_a_loop_that_went_on():
    assert reached(CELL, place(1, 3, iteration=0), place(1, 3, iteration=1)) == [2, 3, 4]


def test_lines_between_two_statements():
    text = "a.backward()\nb = g(a)\nb.backward()\nprint(b)\n"
    assert reached(text, place(1, 1), place(1, 3)) == [1, 2, 3]


def test_a_function_that_a_loop_of_another_one_calls():
    outer = (1, 9)
    first, second = (place(1, 7, iteration=n, outer=outer) for n in (0, 1))
    assert reached(TRAINER, first, second) == [5, 6, 7, 8]  # not what stands behind the call that has not returned


def test_a_line_that_calls_other_code_once():
    outer = (1, 5)
    first = second = place(1, 3, outer=outer)
    assert reached(FOREIGN, first, second) == []


@pytest.mark.parametrize(
    ("line", "answer"),
    [("loss.backward()", True), ("opt.zero_grad(); loss.backward()", True), ("g, = torch.autograd.grad(y, x)", True),
     ("self.manual_backward(loss)", True), ("fit(net)", False), ("trainer.fit(net)", False)],
)  # fmt: skip
def test_which_lines_call_backward_themselves(line, answer):
    assert runs_backward(line, 1) is answer
