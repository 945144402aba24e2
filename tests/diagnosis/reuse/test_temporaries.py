"""Writes to values that no variable held: ``torch.tanh(x).add_(1)``."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply
from graphwidget.diagnosis.source.in_place import temporaries

START = "w = torch.ones(3, requires_grad=True)\nF = nn.functional\n"


@pytest.mark.parametrize(
    ("expression", "new"),
    [
        ("w.tanh().add_(1)", "w.tanh().add(1)"),
        ("torch.sigmoid(w * 2).mul_(2).sub_(1)", "torch.sigmoid(w * 2).mul(2).sub(1)"),
        ("F.relu(w.exp(), inplace=True)", "F.relu(w.exp(), inplace=False)"),
        ("torch.relu_(w.exp())", "torch.relu(w.exp())"),
        ("w.softmax(0).clamp_(min=0.1)", "w.softmax(0).clamp(min=0.1)"),
    ],
)
def test_the_line_is_told_and_written_without_the_write(expression: str, new: str) -> None:
    cell = f"{START}def f(w):\n    return {expression}\n"
    (found,) = findings_of(cell, "f(w).sum().backward()")
    assert found.modified_at is not None and (found.modified_at.cell, found.modified_at.line) == (1, 4)
    fix = found.fixes[0]
    assert fix.verified and apply(cell, fix.edits) == cell.replace(expression, new)
    assert not findings_of(apply(cell, fix.edits), "f(w).sum().backward()")


def test_the_line_of_a_caller_may_write_to_what_a_function_returns() -> None:
    cell = f"{START}def f(w):\n    return w.tanh()\ny = f(w).add_(1)\ny.sum().backward()"
    (found,) = findings_of(cell)
    assert found.modified_at is not None and found.modified_at.line == 5
    assert "y = f(w).add(1)" in apply(cell, found.fixes[0].edits)


def test_a_later_write_by_name_is_not_enough_to_take_away() -> None:
    cell = f"{START}y = w.tanh().add_(1)\ny += w\ny.sum().backward()"
    (found,) = findings_of(cell)
    assert "So did `y = w.tanh().add_(1)`" in found.text
    assert all(not fix.verified or not findings_of(apply(cell, fix.edits)) for fix in found.fixes)
    assert found.fixes[0].verified


def test_a_write_before_the_value_was_saved_is_none() -> None:
    assert not findings_of(f"{START}y = (w * 2).add_(1).tanh()\ny.sum().backward()")
    (found,) = findings_of(f"{START}y = (w * 2).add_(1).tanh()\ny.mul_(2)\ny.sum().backward()")
    assert found.modified_at is not None and found.modified_at.line == 4 and "So did" not in found.text


@pytest.mark.parametrize("text", ["y = w.tanh().zero_()", "y.add_(1).mul_(2)", "y = w.tanh()", "y += w.tanh().add_(1)"])
def test_what_has_no_such_form_is_left(text: str) -> None:
    assert temporaries.written_new(text) in ("", "y += w.tanh().add(1)")
