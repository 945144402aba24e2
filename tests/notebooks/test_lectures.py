"""How a lecture is written: what is in it, without running it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from lectures import FOLDER, NAMES, Cell, Lecture

from graphwidget.notebook import demo

# The examples of the five documents that the project was asked to bring to life; each is a scenario, too.
EXAMPLES = """
double_backward retain_first three_calls add_needs_no_buffer zero_grad_is_no_cure retain_step_backward
two_losses_retain two_losses_no_retain two_nets_two_optims y_outside_loop inside_loop retain_then_del_y a_times_two
int_leaf values_usable_after_backward del_b_still_works plain_loop temp_list retain_alternative retain_alternative_deep
forward_inside forward_outside sum_inside_only twice_in_iteration a_times_5 what_is_intermediate inplace_probe_self
inplace_probe_other python_references
""".split()


@pytest.fixture(params=NAMES)
def lecture(request: pytest.FixtureRequest) -> Lecture:
    return Lecture.read(request.param)


def test_there_are_five_and_the_demo_brings_all(tmp_path: Path) -> None:
    assert [name[:2] for name in NAMES] == ["01", "02", "03", "04", "05"]
    copied = demo.copy_lectures(tmp_path / "lectures")
    assert sorted(path.name for path in copied.glob("*.ipynb")) == NAMES  # it opens the first of these


def test_every_example_of_the_five_documents_is_in_a_lecture() -> None:
    in_lectures = {tag for name in NAMES for cell in Lecture.read(name).code for tag in cell.tags}
    assert len(EXAMPLES) == 29 and set(EXAMPLES) - in_lectures == set()


def test_a_lecture_stands_alone(lecture: Lecture) -> None:
    """It loads what it needs in its first cell, whose tracebacks are short, and says how to read it."""
    first, head = lecture.code[0].source, lecture.cells[0].source
    assert first.startswith("%load_ext graphwidget\n%xmode Minimal\n") and "import graphwidget as gw" in first
    assert head.startswith(f"# {int(lecture.name[:2])}. ")
    for said in ("50 minutes", "**raises**", "**Exercise", "typewriter type"):
        assert said.strip("*") in head or said == "**Exercise" and "exercise" in head


def test_it_ends_with_what_to_remember_in_five_lines(lecture: Lecture) -> None:
    heading, _, *lines = lecture.cells[-1].source[lecture.cells[-1].source.index("## What to remember") :].splitlines()
    assert heading == "## What to remember"
    assert [line[:3] for line in lines] == ["1. ", "2. ", "3. ", "4. ", "5. "]


def test_old_advice_is_measured(lecture: Lecture) -> None:
    """The section names versions, and has cells: nothing in it is hearsay."""
    (start,) = (at for at, cell in enumerate(lecture.cells) if "## " in cell.source and "old advice" in cell.source)
    cells = [cell.source for cell in lecture.cells[start:] if cell.kind == "code"]
    assert "torch.__version__" in cells[0] and len(cells) > 1


def test_a_cell_that_raises_says_so_above(lecture: Lecture) -> None:
    """Where it is not what an exercise asks."""
    for above, cell in zip(lecture.cells, lecture.cells[1:], strict=False):
        if "raises-exception" in cell.tags:
            assert above.kind == "markdown" and re.search(r"\braises\*\*|\*\*Exercise", above.source), cell.source


def test_exercises_are_numbered_and_solved(lecture: Lecture) -> None:
    """A solution is folded, and proves itself with an assert. What a cell that raises shows needs no other."""
    text = "\n".join(cell.source for cell in lecture.cells if cell.kind == "markdown")
    numbers = [int(number) for number in re.findall(r"\*\*Exercise (\d+)", text)]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 5
    solutions = [cell for cell in lecture.code if "solution" in cell.tags]
    assert len(solutions) >= len(numbers) // 2
    for cell in solutions:
        assert "assert " in cell.source and cell.metadata.jupyter == {"source_hidden": True}
        assert cell.source.startswith("# solution\n"), "a front end shows the first line of a folded cell"
    for cell, after in zip(lecture.cells, lecture.cells[1:], strict=False):
        if "exercise" in cell.tags:
            assert "# your turn" in cell.source and "solution" in after.tags


@pytest.mark.parametrize("name", NAMES)
def test_it_is_committed_without_outputs(name: str) -> None:
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    for cell in notebook.cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None


# -- the graded exercise -------------------------------------------------------------------------------

_SOLUTION = re.compile(r"### BEGIN SOLUTION\n.*?\n### END SOLUTION", re.DOTALL)
_HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS\n.*?\n### END HIDDEN TESTS\n?", re.DOTALL)


def graded() -> tuple[Cell, Cell, Cell]:
    """The cells of the graded exercise: what is given, the answer, the tests."""
    cells = [cell for name in NAMES for cell in Lecture.read(name).code if "nbgrader" in cell.metadata]
    given, answer, tests = cells
    return given, answer, tests


def test_the_graded_exercise_is_what_nbgrader_reads() -> None:
    given, answer, tests = graded()
    assert [cell.metadata.nbgrader.schema_version for cell in (given, answer, tests)] == [3, 3, 3]
    assert (answer.metadata.nbgrader.solution, answer.metadata.nbgrader.locked) == (True, False)
    assert (tests.metadata.nbgrader.grade, tests.metadata.nbgrader.locked, tests.metadata.nbgrader.points) == (
        True,
        True,
        3,
    )
    assert given.metadata.nbgrader.locked and not given.metadata.nbgrader.grade
    assert _SOLUTION.fullmatch(answer.source) and _HIDDEN.search(tests.source)


@pytest.mark.parametrize(
    "answered, passes, why",
    [
        (None, True, ""),
        ("answer = gw.predict(loss1, fails='TanhBackward0[1]')", False, "but at TanhBackward0[0]"),
        ("answer = gw.predict(loss1, fails=False)", False, "Wrong: loss1.backward() would raise"),
        ("answer = gw.predict(loss1, fails=True)", False, "say at which node"),
        ("answer = gw.predict(loss1)", False, "Predict what loss1.backward() does"),
        ("answer = gw.predict(loss0, fails=True)", False, "a prediction of loss1.backward() is asked for"),
        ("raise NotImplementedError()", False, ""),
    ],
)
def test_a_grader_lets_the_right_answer_pass_and_says_why_another_does_not(
    answered: str | None, passes: bool, why: str
) -> None:
    given, answer, tests = graded()
    names: dict[str, Any] = {"__name__": "__main__"}
    setup = "import torch\nfrom torch import nn\nimport graphwidget as gw\n"
    made = "cell, read, xs = nn.RNNCell(2, 8), nn.Linear(8, 1), torch.rand(20, 4, 2)"
    exec(setup + made, names)
    exec(given.source, names)
    written = answer.source if answered is None else _SOLUTION.sub(answered, answer.source)
    if passes:
        exec(written, names)
        exec(tests.source, names)
        return
    with pytest.raises((AssertionError, NotImplementedError)) as failed:
        exec(written, names)
        exec(tests.source, names)
    assert why in str(failed.value)
    assert isinstance(names["loss1"], torch.Tensor)


def test_a_student_does_not_see_the_hidden_tests() -> None:
    _, answer, tests = graded()
    assert "TanhBackward0" in answer.source and "TanhBackward0" not in _SOLUTION.sub("", answer.source)
    assert "assert answer" in _HIDDEN.sub("", tests.source) and "explain" not in _HIDDEN.sub("", tests.source)
