"""Columns that are taken beside the network, and whose gradients a function of the program asks for."""

from __future__ import annotations

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

HELPER = """def derivative(f, v):
    return torch.autograd.grad(f, v, grad_outputs=torch.ones_like(f), create_graph=True)[0]
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
def residual(points):
    u = net(points)
    t, x, y = points[:, 0:1], points[:, 1:2], points[:, 2:3]
    return derivative(u, {t}) - derivative(derivative(u, x), v=x)
points = torch.rand(5, 3, requires_grad=True)
"""
ASKED = "res = residual(points)\nres.pow(2).mean().backward()"
EXACT = """g = torch.autograd.grad(net(points).sum(), points, create_graph=True)[0]
second = torch.autograd.grad(g[:, 1].sum(), points)[0][:, 1:2]
assert torch.allclose(res, g[:, 0:1] - second, atol=1e-6)"""


@pytest.mark.parametrize("t", ["t", "v=t"])
def test_the_whole_is_asked_for_and_the_part_taken_of_it(t: str) -> None:
    setup = HELPER.format(t=t)
    (found,) = findings_of(setup, ASKED)
    assert "takes `t` out of `points`" in found.text and found.fixes[0].id == "differentiate_the_whole"
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 6)
    fixed = apply(setup, found.fixes[0].edits)
    assert "derivative(derivative(u, points)[:, 1:2], v=points)[:, 1:2]" in fixed
    assert not findings_of(fixed, ASKED, EXACT)


def test_a_helper_that_returns_something_else_has_advice_only() -> None:
    setup = (
        HELPER.format(t="t")
        .replace("    return torch", "    found = torch")
        .replace("[0]\nnet", "[0]\n    return found * 2\nnet")
    )
    (found,) = findings_of(setup, ASKED)
    assert not any(one.edits for one in found.fixes)
