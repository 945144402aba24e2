"""What is advised after a second click: it must not stop the training of what the first one trained."""

from __future__ import annotations

import pytest
from test_actions import Stage

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
GAN = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
G = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
og, od = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for i in range(5):
    real_loss = F.softplus(-D(torch.randn(8, 2))).mean()
    fake_loss = F.softplus(D(G(torch.randn(8, 2)).detach())).mean()
    D_loss = real_loss + fake_loss
    od.zero_grad()
    real_loss.backward()
    fake_loss.backward()
    od.step()
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
        stage.result("backward", root=stage.root(root))
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


def test_a_loss_that_a_finished_loop_has_left_is_no_finding_and_its_button_says_why(stage):
    stage.cell(GAN)
    assert stage.tracker.findings() == ()
    assert "raise" in str(stage.result("forecast", root=stage.root("D_loss")))
