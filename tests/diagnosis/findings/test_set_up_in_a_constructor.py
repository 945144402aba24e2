"""A constructor that sets up a whole experiment is read as a program's own lines are."""

from told import findings_of

REPLACED = """
import torch
from torch import nn
class Experiment:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.net.weight = nn.Parameter(torch.zeros(1, 3))
        self.x = torch.randn(16, 3)
    def fit(self):
        for _ in range(5):
            loss = self.net(self.x).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
Experiment().fit()
"""
SCALED = """
import torch
class Experiment:
    def __init__(self):
        self.image = torch.randn(2, 3, requires_grad=True) * 0.01
        self.opt = torch.optim.SGD([self.image], lr=0.5)
Experiment()
"""


def test_a_part_replaced_behind_the_optimizer():
    found = next(one for one in findings_of(REPLACED) if one.fixes and one.fixes[0].id == "new_optimizer")
    assert found.cause is not None and found.cause.line == 8
    assert [(edit.start[0], edit.new.strip()) for edit in found.fixes[0].edits] == [
        (7, ""),
        (8, "self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)"),
    ]


def test_an_attribute_that_is_no_leaf():
    found = findings_of(SCALED)[0]
    assert found.headline == "`self.image` is no leaf."
    (edit,) = found.fixes[0].edits
    assert (edit.start[0], edit.new) == (5, "(torch.randn(2, 3) * 0.01).requires_grad_()")
