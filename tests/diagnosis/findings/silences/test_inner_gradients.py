"""Steps that change nothing because a gradient on the way to the loss was computed without a graph."""

from __future__ import annotations

import pytest
from told import findings_of

from graphwidget.model import Finding

INNER = """net, x, y = nn.Linear(2, 1), torch.randn(6, 2), torch.randn(6, 1)
weights = torch.zeros(6, requires_grad=True)
opt = torch.optim.SGD([weights], 0.1)
def adapt(scores):
    fast = list(net.parameters())
    losses = (torch.nn.functional.linear(x, *fast) - y).pow(2).squeeze(1)
    grads = torch.autograd.grad((scores.softmax(0) * losses).sum(), fast)
    return [p - 0.1 * g for p, g in zip(fast, grads)]"""
OUTER = """for step in range(3):
    w, b = adapt(weights)
    opt.zero_grad()
    loss = (torch.nn.functional.linear(x, w, b) - y).pow(2).mean()
    loss.backward()
    opt.step()"""


def idle(*cells: str) -> Finding:
    (found,) = (one for one in findings_of(*cells) if one.headline.endswith("changed nothing."))
    return found


def test_the_gradient_of_the_inner_step_is_the_cause() -> None:
    found = idle(INNER, OUTER)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 7)
    assert [fix.id for fix in found.fixes] == ["create_graph"]
    fixed = found.fixes[0].edit[-1][2:].strip()
    assert fixed == "grads = torch.autograd.grad((scores.softmax(0) * losses).sum(), fast, create_graph=True)"
    line = next(one for one in INNER.splitlines() if "autograd.grad" in one).strip()
    assert findings_of(INNER.replace(line, fixed), OUTER) == ()


@pytest.mark.parametrize(
    "inner, outer",
    [
        (INNER, OUTER.replace("adapt(weights)", "adapt(torch.zeros(6))")),
        (INNER, "adapt(weights)[0].sum().backward()\n" + OUTER.replace("adapt(weights)", "net.parameters()")),
    ],
    ids=["of others", "for an earlier backward"],
)
def test_a_gradient_that_the_loss_does_not_need_is_not_the_cause(inner: str, outer: str) -> None:
    assert "builds no graph" not in idle(inner, outer).text
