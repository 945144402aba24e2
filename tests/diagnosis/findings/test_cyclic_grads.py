"""Gradients with a graph that lead back to their leaves: told where the cycles are still there, however they end."""

import pytest
from cells import Notebook

from graphwidget.diagnosis.diagnose import diagnose

MODEL = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4)
"""
OWN_OPTIMIZER = """
class Own(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
    def zero_grad(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad.detach(), alpha=-0.1)
"""
LOOP = """
opt = Own(net.parameters())
for step in range(20):
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward(create_graph=True)
    opt.step()
"""
ELSEWHERE = """
def forget(module):
    for p in module.parameters():
        setattr(p, "grad", None)
for step in range(8):
    forget(net)
    loss = net(x).square().mean()
    loss.backward(create_graph=True)
"""
FRESH = """
def probe():
    point = torch.randn(4, requires_grad=True)
    net(point).sum().backward(create_graph=True)
    return point.grad.norm().item()
norms = [probe() for _ in range(6)]
net.zero_grad()
"""


def findings_of(*cells):
    notebook = Notebook(diagnose=diagnose)
    for cell in cells:
        assert notebook.run(cell) is None
    return notebook.tracker.findings()


@pytest.mark.parametrize("cells", [(MODEL, OWN_OPTIMIZER, LOOP), (MODEL, ELSEWHERE)])
def test_gradients_that_are_cleared_anywhere_leave_no_cycle_and_a_loss_that_was_run_is_no_danger(cells):
    assert findings_of(*cells) == ()


def test_leaves_made_anew_whose_gradients_stay_are_told():
    (found,) = findings_of(MODEL, FRESH)
    assert (found.kind, found.severity) == ("leak", "warning")
    assert "cycle" in found.headline and "point.grad" in found.headline
