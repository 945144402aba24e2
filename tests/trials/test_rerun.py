"""A program with a fix in it: cells and files as they would be."""

import pytest

from graphwidget.model import Fix, TextEdit
from graphwidget.trials.rerun import CannotEdit, Job, Rerun, edited

CELLS = Rerun("a.py", cells=("y = f(x)\n", "y.backward()\n"), order=(1, 2, 2))


def same(number):
    return number


def fix(*edits, **fields):
    return Fix("detach", "…", edits=edits, **fields)


def test_an_edited_cell_is_one_of_the_program_s():
    found = edited(CELLS, fix(TextEdit((1, 11), (1, 11), "retain_graph=True", 7)), {7: 2}.get, 3)
    assert found.rerun.cells == ["y = f(x)\n", "y.backward(retain_graph=True)\n"]
    assert (found.begins, found.rerun.order) == (2, (1, 2, 2))


def test_a_cell_is_run_again_before_the_one_that_raised():
    found = edited(CELLS, Fix("rerun_forward_cell", "…", at=(5, 1)), {5: 1}.get, 3)
    assert (found.rerun.order, found.inserted) == ([1, 2, 1, 2], 3)


def test_a_new_statement_is_a_cell_behind_all_others():
    found = edited(CELLS, Fix("del_variable", "…", edit=("+ del y",)), same, 0)
    assert found.rerun.cells[-1] == "del y" and found.rerun.order[-1] == 3


def test_a_file_is_edited_in_its_own_encoding_and_stays_as_it_is(tmp_path):
    content = "# -*- coding: latin-1 -*-\r\nx = 'größer'\r\n".encode("latin-1")
    (tmp_path / "m.py").write_bytes(content)
    found = edited(Rerun("t.py", folder=str(tmp_path)), fix(TextEdit((2, 4), (2, 4), "1 or ", None, "m.py")), same, 1)
    assert [text.encode("latin-1") for text in found.texts.values()] == [
        "# -*- coding: latin-1 -*-\nx = 1 or 'größer'\n".encode("latin-1")
    ]
    assert (tmp_path / "m.py").read_bytes() == content


@pytest.mark.parametrize(
    "wrong",
    [
        fix(),
        fix(TextEdit((1, 0), (1, 0), "x", 99)),
        fix(TextEdit((9, 0), (9, 5), "x", 1)),
        fix(TextEdit((1, 0), (1, 0), "x", None, "missing.py")),
        Fix("rerun_forward_cell", "…", at=(9, 1)),
    ],
)
def test_what_cannot_be_edited_is_said(tmp_path, wrong):
    with pytest.raises(CannotEdit):
        edited(Rerun("a.py", cells=CELLS.cells, order=CELLS.order, folder=str(tmp_path)), wrong, {1: 1}.get, 1)


def test_a_job_crosses_as_text():
    job = Job("a.py", ["-v"], False, ["x"], [1], False, {"/m.py": "ö"}, 1, None, 10.0, 1e9, "/account")
    assert Job.from_json(job.to_json()) == job
