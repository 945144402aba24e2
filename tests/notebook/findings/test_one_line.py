"""Several statements on one line, as people write them in cells."""

from __future__ import annotations

import pytest

LEAF = "w = torch.ones(3, requires_grad=True)"
NET = "from torch import nn\nnet = nn.Linear(2, 1)\nx = torch.randn(4, 2)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)"


@pytest.mark.parametrize("write, instead", [("y += 1", "y = y + 1"), ("y.mul_(2)", "y = y.mul(2)")])
@pytest.mark.parametrize("end", ["; y.sum().backward()", "\ny.sum().backward()"], ids=["same line", "next line"])
def test_a_write_to_what_its_own_line_made_is_found(run, write, instead, end):
    (found, *_) = run(LEAF, f"y = w.exp(); {write}{end}")
    assert found.kind == "inplace" and found.tensor == "y" and f"`{write}`" in found.text
    assert any(f"y = w.exp(); {instead}" in line for line in found.fixes[0].edit if line.startswith("+"))


def test_a_write_to_something_else_on_that_line_is_not_accused(run):
    findings = run(LEAF, "z = torch.ones(3); y = w.exp(); z += 1; y.sum().backward()")
    assert not findings


def test_the_step_of_a_line_is_followed_by_what_clears_its_gradients(run):
    loop = "for i in range(6):\n    loss = net(x).pow(2).mean(); loss.backward(); opt.step()"
    (found,) = run(NET, loop)
    assert found.headline.endswith("nothing clears those of `opt`.")
    assert found.fixes[0].edit[-1].split() == ["+", "opt.zero_grad()"]


def test_of_a_line_only_the_statement_that_changes_is_quoted(run):
    loop = "log = []\nfor i in range(6):\n    loss = net(x).sum(); opt.zero_grad(); loss.backward(); log.append(loss)"
    (found,) = run(NET, loop)
    assert "write `log.append(loss.detach())` (In[" in found.fixes[0].text
