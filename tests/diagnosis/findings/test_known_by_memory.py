"""A leaf that has one name in one function and another in the next is known by its memory."""

from told import findings_of

INNER = """
import torch
from torch import nn
class Learner:
    def __init__(self):
        self.data = [nn.Parameter(torch.randn(4, 3))]
        self.weight = torch.randn(1, 3, requires_grad=True)
        self.opt = torch.optim.SGD(self.data, lr=0.5)
    def adapted(self):
        loss = nn.functional.linear(self.data[0], self.weight).pow(2).sum()
        step, = torch.autograd.grad(loss, [self.weight], retain_graph=True)
        return self.weight - 0.1 * step
    def train(self, given):
        for _ in range(3):
            loss = nn.functional.linear(given, self.adapted()).pow(2).sum()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
def main():
    learner = Learner()
    learner.train(torch.randn(5, 3))
    print("done")
main()
"""


def test_a_gradient_that_builds_no_graph():
    found = next(one for one in findings_of(INNER) if "changed nothing" in one.headline)
    assert "torch.autograd.grad(loss" in found.text and "create_graph" in found.names
    assert any("create_graph=True" in edit.new for edit in found.fixes[0].edits)
