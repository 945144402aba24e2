"""A computed tensor as a plain attribute, in the place of a parameter that takes only its values."""

from __future__ import annotations

import ast

import pytest

from graphwidget.diagnosis.fixes.plain_attributes import not_as_parameter, not_into_a_leaf
from graphwidget.diagnosis.source.edits import text_edit


def after(text: str, line: str) -> list[str]:
    """The lines of a text that an edit of one of them has written."""
    statement = next(one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.stmt) and ast.unparse(one) == line)
    edits = not_as_parameter(1, text, statement) or not_into_a_leaf(1, text, statement)
    lines = text_edit.apply(text, edits).splitlines()
    return [one.strip() for one in lines if one not in text.splitlines()]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("layer.weight = nn.Parameter(w * 2)", ["del layer.weight", "layer.weight = w * 2"]),
        ("setattr(layer, name, nn.Parameter(w))", ["layer._parameters.pop(name, None)", "setattr(layer, name, w)"]),
        ("layer.weight.data = w + 1", ["del layer.weight", "layer.weight = w + 1"]),
        ("self.net[0].bias.data.copy_(w)", ["del self.net[0].bias", "self.net[0].bias = w"]),
        ("layer.weight.copy_(w)", ["del layer.weight", "layer.weight = w"]),
        ("getattr(layer, name).data = w", ["delattr(layer, name)", "setattr(layer, name, w)"]),
        ("p.data = w", []),  # a variable of a loop: nothing says whose it is
        ("layer.weight.data[0] = w", []),
        ("layer.weight.data.add_(w)", []),
    ],
)
def test_what_is_put_in_the_place_of_a_parameter(line: str, new: list[str]) -> None:
    assert after(f"for w in ws:\n    {line}\n", line) == new


def test_an_attribute_that_is_a_parameter_at_first_is_deleted() -> None:
    line = "self.mask = nn.Parameter(f(self.raw))"
    text = "def {}(self):\n    self.mask = {}\n".format
    assert after(text("forward", "nn.Parameter(f(self.raw))"), line) == ["self.mask = f(self.raw)"]
    both = text("__init__", "nn.Parameter(torch.ones(2))") + text("forward", "nn.Parameter(f(self.raw))")
    assert after(both, line) == ["del self.mask", "self.mask = f(self.raw)"]
    registered = "def __init__(self):\n    self.register_parameter('mask', None)\n"
    assert after(registered + text("forward", "nn.Parameter(f(self.raw))"), line)[0] == "del self.mask"
