"""Reads of a variable as more than a number."""

import ast

import pytest

from graphwidget.diagnosis.source import syntax as source


@pytest.mark.parametrize(
    "text",
    [
        "print(kept[-1])",
        "mean = sum([one.item() for one in kept]) / len(kept)",
        "kept.append(loss)",
        "kept[0] = loss",
        "del kept",
        "self.kept[-1].detach()",
        "kept",
        "last = float(kept[-1])",
        "kept.pop(0)",
        "self.kept.popleft()",
    ],
)
def test_numbers_and_looks_are_not_handed_on(text):
    assert list(source.handed_on(ast.parse(text), "kept")) == []


@pytest.mark.parametrize(
    "text",
    [
        "total = torch.stack(kept).sum()",
        "kept[-1].sum().backward()",
        "s = kept[-1]",
        "for one in self.kept: one.backward()",
        "total = sum([2 * one for one in kept]) / len(kept)",
        "kept.pop().backward()",
        "total = total + kept.pop(0)",
    ],
)
def test_what_may_go_on_to_a_backward_is_handed_on(text):
    assert list(source.handed_on(ast.parse(text), "kept")) == [1]
