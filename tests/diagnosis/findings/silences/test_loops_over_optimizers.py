"""A loop over optimizers in which one loss leaves gradients for the step of the next one."""

from __future__ import annotations

import pytest
from told import findings_of, said

from graphwidget.diagnosis.source.edits.text_edit import apply

NETS = """G, D = nn.Linear(2, 3), nn.Linear(3, 1)
opt_g, opt_d = (torch.optim.SGD(net.parameters(), lr=0.01) for net in (G, D))
def loss_of(i):
    fake = G(torch.rand(4, 2))
    return -D(fake).mean() if i == 0 else D(fake.detach()).mean() - D(torch.rand(4, 3)).mean()
"""
LOOP = """for step in range(4):
    for i, opt in enumerate({order}):
        {before}
        loss = loss_of(i)
        loss.backward()
        opt.step()
        {after}
"""


@pytest.mark.parametrize("order", ["(opt_g, opt_d)", "[opt_g, opt_d]"])
def test_what_is_cleared_only_behind_its_own_step_is_told(order: str) -> None:
    loop = LOOP.format(order=order, before="pass", after="opt.zero_grad()")
    (found,) = findings_of(NETS, loop)
    assert found.headline == "`opt` goes by gradients that another loss has left, too."
    assert set(found.names) >= {"D.weight", "opt", "zero_grad"}
    fixed = apply(loop, found.fixes[0].edits)
    assert "opt.zero_grad()\n        loss.backward()" in fixed and said(NETS, fixed) == []


def test_cleared_before_its_own_loss_is_right() -> None:
    assert said(NETS, LOOP.format(order="(opt_g, opt_d)", before="opt.zero_grad()", after="pass")) == []


def test_gradients_that_several_passes_add_up_on_purpose_are_left_alone() -> None:
    loop = LOOP.format(order="(opt_g, opt_d)", before="pass", after="pass")
    loop = loop.replace(
        "        opt.step()", "        if step % 2:\n            opt.step()\n            opt.zero_grad()"
    )
    assert said(NETS, loop.replace("range(4)", "range(8)")) == []
