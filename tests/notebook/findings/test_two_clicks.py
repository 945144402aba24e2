"""What is advised after a second click: it must not stop the training of what the first one trained."""

from __future__ import annotations

import pytest
from stage import Stage

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.notebook.notes import explain_call

TWO = """
import torch
from torch import nn
torch.manual_seed(0)
trunk, one, two = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
x = torch.randn(8, 4)
z = trunk(x).tanh()
loss1 = one(z).pow(2).mean()
loss2 = two(z).pow(2).mean()
"""
LOOP = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 4)
for it in range(4):
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
"""
OPTIMIZED = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(20):
    loss = net(torch.randn(8, 2)).pow(2).mean()
    kept = net(torch.randn(8, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BY_HAND = OPTIMIZED.replace("opt.zero_grad()", "net.zero_grad()").replace(
    "opt.step()",
    """with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad""",
)
ENDLESS = """
import torch
theta = torch.tensor([2.0], requires_grad=True)
scale = theta.exp()
while scale > 0.5:
    energy = (scale * theta).sum()
    energy.backward()
    with torch.no_grad():
        theta -= 0.1 * theta.grad
        theta.grad.zero_()
"""


@pytest.fixture
def stage():
    one = Stage()
    yield one
    one.tracker.stop()


def click(stage, *roots):
    """Press the buttons of some roots; the finding of the last one."""
    for root in roots:
        stage.refresh()
        asks = stage.result("backward", root=stage.root(root)).get("asks")
        if asks:  # of a call that would raise: yes
            stage.result("backward", root=stage.root(root), confirmed=asks["key"])
    return stage.tracker.findings()[0]


def test_two_losses_are_summed_or_the_first_is_kept(stage):
    stage.cell(TWO)
    finding = click(stage, "loss1", "loss2")
    assert [fix.id for fix in finding.fixes] == ["single_backward_sum", "retain_graph_earlier_call", "detach"]
    assert [fix.verified for fix in finding.fixes] == [True, True, True]
    total, kept, cut = finding.fixes
    assert "(loss1 + loss2).backward()" in total.text and total.edit == ()
    assert "`loss1.backward()`" in kept.text and "button" in kept.text
    assert "`trunk.bias` and `trunk.weight`" in cut.price and set(cut.starves) == {"trunk.bias", "trunk.weight"}


def test_one_loss_twice_is_kept_or_left_out(stage):
    stage.cell(TWO)
    finding = click(stage, "loss1", "loss1")
    assert [(fix.id, fix.verified) for fix in finding.fixes][:1] == [("retain_graph_earlier_call", True)]
    assert all("detach" not in fix.text for fix in finding.fixes)


def test_a_loss_that_a_loop_has_run_is_not_run_again(stage):
    stage.cell(LOOP)
    finding = click(stage, "loss")
    assert finding.kind == "second_backward"
    assert [(fix.id, fix.verified) for fix in finding.fixes] == [("remove_duplicate_call", True)]
    assert finding.fixes[0].text.startswith("Leave out")


@pytest.mark.parametrize("loop", [OPTIMIZED, BY_HAND])
def test_a_loss_that_a_finished_loop_has_left_is_no_finding_and_its_button_says_why(stage, loop):
    stage.cell(loop)
    assert stage.tracker.findings() == ()
    assert "raise" in str(stage.result("forecast", root=stage.root("kept")))


def test_a_loss_that_nobody_has_run_and_a_line_spoiled_is_warned_of(stage):
    stage.cell("import torch\nw = torch.ones(3, requires_grad=True)\nh = w.exp()\nloss = h.sum()\nh += 1\n")
    (finding,) = stage.tracker.findings()
    assert (finding.kind, finding.severity, finding.tensor) == ("inplace", "warning", "h")


def test_the_note_tells_the_checked_fixes(stage):
    assert isinstance(stage.notebook.run(ENDLESS), RuntimeError)
    record = stage.tracker.record()
    finding = next(one for one in diagnose(record) if one.severity == "error")
    note = " ".join(explain_call(record, record.calls[-1]).split())
    assert [fix.id for fix in finding.fixes] == ["recompute_in_loop"]
    assert finding.fixes[0].text in note and "detach" not in note
