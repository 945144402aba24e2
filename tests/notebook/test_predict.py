"""Predict first, in a notebook: the magic asks and never waits, a grader asserts, and `check` looks at what happened."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
import torch
from IPython.core.error import UsageError
from nbclient import NotebookClient

import graphwidget as gw

FORWARD = "import torch; w = torch.ones(3, requires_grad=True); loss = (w * w).exp().sum()"


@pytest.fixture
def loaded(shell: Any) -> Any:
    shell.run_cell("%load_ext graphwidget", store_history=True)
    shell.run_cell(FORWARD, store_history=True)
    return shell


def printed(shell: Any, capsys: pytest.CaptureFixture[str], line: str) -> str:
    capsys.readouterr()
    shell.run_line_magic("graphwidget", line)
    return capsys.readouterr().out


# -- the magic -----------------------------------------------------------------------------------------


def test_it_asks_by_name_and_goes_on(loaded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(loaded, capsys, "predict loss --retain-graph")
    assert out.startswith("Predict what loss.backward(retain_graph=True) does before you run it.\n")
    assert "MulBackward0.other, MulBackward0.self, ExpBackward0.result" in out and "Nothing has run." in out
    assert loaded.user_ns["w"].grad is None


def test_it_takes_answers(loaded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(loaded, capsys, "predict loss fails=no frees=MulBackward0.self,ExpBackward0.result")
    assert "Missed: MulBackward0.other" in out and out.endswith("<Prediction of loss.backward(): 3 of 4 right>\n")
    assert "1 of 1 right" in printed(loaded, capsys, "predict loss frees= --retain-graph")
    assert "0 of 1 right" in printed(loaded, capsys, "predict loss fails=ExpBackward0")
    assert "0 of 1 right" in printed(loaded, capsys, "predict loss fails=yes")


@pytest.mark.parametrize(
    "line, why",
    [
        ("predict", "Of which tensor"),
        ("predict los", "There is: loss"),
        ("predict loss --retain", "Did you mean `--retain-graph`"),
        ("predict loss frees=MulBackward0.selff", "Those of MulBackward0 are"),
        ("predict loss fails=maybe", "The nodes are"),
    ],
)
def test_what_is_not_there_is_said_without_a_traceback(loaded: Any, line: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        loaded.run_line_magic("graphwidget", line)


# -- what happened -------------------------------------------------------------------------------------


def test_a_prediction_is_checked_against_the_call_that_was_made() -> None:
    w = torch.ones(3, requires_grad=True)
    with gw.track():
        loss = (w * w).sum()
        said = gw.predict(loss, fails=False, frees=["MulBackward0.self"])
        with pytest.raises(RuntimeError, match=r"No loss.backward\(\) has been recorded since"):
            said.check()
        w.exp().sum().backward()
        loss.backward(retain_graph=True)
        loss.backward()
    assert said.check().explain().splitlines() == [
        "Right: ② did not raise: each node that ran had what it needed.",
        "Wrong: MulBackward0.self was not freed: ② with retain_graph=True keeps it.",
    ]
    assert said.score == 2 / 3, "what was predicted is not rewritten"


def test_what_other_calls_did_in_between_is_named() -> None:
    w = torch.ones(3, requires_grad=True)
    with gw.track():
        h = w.exp()
        loss = (h * h).sum()
        said = gw.predict(loss, fails=False, frees=["MulBackward0.self", "MulBackward0.other", "ExpBackward0.result"])
        assert said
        h.sum().backward()
        with pytest.raises(RuntimeError):
            loss.backward()
        assert said.check().explain().splitlines() == [
            "Wrong: ② raised at ExpBackward0: its saved tensor result was freed by ①.",
            "Right: MulBackward0.self was freed: ② ran MulBackward0 and did not retain the graph.",
            "Right: MulBackward0.other was freed: ② ran MulBackward0 and did not retain the graph.",
            "Wrong: ExpBackward0.result was not freed: ① has freed it already.",
        ]
        where = gw.predict(loss, fails=True)
        with pytest.raises(RuntimeError):
            loss.backward()
        assert where.check().explain() == "Right: ③ raised at MulBackward0: its saved tensor other was freed by ②."


def test_calls_of_a_loop_that_are_only_counted_can_be_checked() -> None:
    w = torch.ones(3, requires_grad=True)
    said = []
    with gw.track() as tracker:
        for _ in range(40):
            loss = (w * w).sum()
            said.append(gw.predict(loss, fails=False, frees=["MulBackward0.self", "MulBackward0.other"]))
            loss.backward()
        assert any(call.same_as is not None for call in tracker.calls), "else this tests nothing"
        assert [one.check().score for one in said] == [1.0] * 40


# -- a notebook with a grader --------------------------------------------------------------------------

QUESTION = """
%graphwidget predict loss --retain-graph
"""
SOLUTION = """
import graphwidget as gw
answer = gw.predict(loss, retain_graph=True, fails=False, frees=[])
"""
GRADER = """
assert answer.score == 1, answer.explain()
loss.backward(retain_graph=True)
assert answer.check(), answer.check().explain()
"""


@pytest.mark.parametrize("load", ["%load_ext graphwidget", "import graphwidget"])
def test_a_graded_notebook_runs_from_top_to_bottom(load: str) -> None:
    """As `nbconvert --execute` runs it: nobody is there to answer. Without the extension a grader has the forecast."""
    cells = [load, FORWARD, QUESTION, SOLUTION, GRADER]
    if "load_ext" not in load:
        cells = [load, FORWARD, SOLUTION, GRADER.split("\nloss")[0]]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    said = [output.get("text", "") for cell in notebook.cells for output in cell.outputs]
    assert ("load_ext" in load) == any("Predict what loss.backward(retain_graph=True) does" in text for text in said)
