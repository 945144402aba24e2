"""Which leaves a program trains is known by the attributes of which its optimizer was made, not by `self` alone."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.pytorch.optimizers import is_below

FIT = """
import torch
class Experiment:
    def __init__(self):
        self.x = torch.randn(20, 2)
        self.truth = torch.randn(2, 1, requires_grad=True)
        self.y = torch.sigmoid(self.x @ self.truth)
        self.w = torch.zeros(2, 1, requires_grad=True)
        self.opt = torch.optim.SGD([self.w], lr=0.1)
    def fit(self):
        for it in range(3):
            loss = (torch.sigmoid(self.x @ self.w) - self.y).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
"""


@pytest.mark.parametrize("start", ["Experiment().fit()", "e = Experiment()\ne.fit()"])
def test_what_no_optimizer_holds_is_cut_off(start):
    found = findings_of(FIT + start + "\n")[0]
    assert [edit.new for edit in found.fixes[0].edits] == [".detach()"]
    assert not found.fixes[0].starves


def test_what_an_optimizer_holds_is_computed_again():
    found = findings_of(FIT.replace("[self.w]", "[self.w, self.truth]") + "Experiment().fit()\n")[0]
    new = [edit.new.strip() for edit in found.fixes[0].edits]
    assert new == ["self.y = torch.sigmoid(self.x @ self.truth)"]


@pytest.mark.parametrize(
    ("path", "holder", "below"),
    [
        ("fit:self.head.weight", "self.head", True),
        ("trainer.head.weight", "self.head", True),
        ("trainer.headless.weight", "self.head", False),
        ("trainer.truth", "self.head", False),
        ("main:net.head.weight", "net", True),
        ("net.tail.weight", "net.head", False),
        ("net.head[0].weight", "net.head", True),
    ],
)
def test_a_part_of_what_an_optimizer_is_made_of(path, holder, below):
    assert is_below(path, holder) is below
