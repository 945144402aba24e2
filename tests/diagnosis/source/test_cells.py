"""The cells of a record, asked by their numbers."""

import ast

from graphwidget.diagnosis.source.cells import Cells
from graphwidget.model import CellRun

LOOP = "for x in xs:\n    y = f(x)\n"


def cells():
    """Cell `a` ran as 1 and, with another text, as 3; cell `b` as 2; the last has no number."""
    return Cells(
        [
            CellRun(2, 3, LOOP, "a"),
            CellRun(0, 1, "old = 1\n", "a"),
            CellRun(1, 2, "b = 1\n", "b"),
            CellRun(3, None, "hidden = 1\n"),
        ]
    )


def test_each_number_has_the_text_that_ran_under_it():
    assert list(cells().texts) == [1, 2, 3]
    assert [cells().text(number) for number in (1, 2, 3, 9, None)] == ["old = 1\n", "b = 1\n", LOOP, "", ""]


def test_a_number_that_ran_again_has_its_last_text():
    again = Cells([CellRun(0, 1, "a\n"), CellRun(1, 2, "b\n"), CellRun(2, 1, "c\n")])
    assert again.texts == {2: "b\n", 1: "c\n"} and list(again.texts) == [2, 1]


def test_each_cell_of_the_notebook_is_there_once_as_it_was_last_run():
    assert [run.run for run in cells().latest] == [1, 2, 3]


def test_what_stands_at_a_line():
    known = cells()
    assert known.line((3, 2)) == "y = f(x)" and known.line((3, 9)) == "" and known.line((9, 1)) == ""
    assert ast.unparse(known.statement((3, 2))) == "y = f(x)" and known.statement((9, 1)) is None
    assert isinstance(known.loop((3, 2)), ast.For) and known.loop((2, 1)) is None
