"""A copy that fails because running statistics keep graphs: the lines that write them are the cause, told once."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

CELL = """
import copy
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3))
    def forward(self, x):
        mean, var = x.mean(0), x.var(0)
        self.mean.mul_(0.9)
        self.mean.add_(mean * 0.1)
        OTHER
        return (x - mean) / var.sqrt()
net = nn.Sequential(nn.Linear(3, 3), Norm(), nn.Linear(3, 3), Norm())
opt = torch.optim.SGD(net.parameters(), 0.01)
def train(passes):
    for _ in range(passes):
        opt.zero_grad()
        net(torch.randn(5, 3)).exp().sum().backward()
        opt.step()
train(6)
"""
COPY = "best = copy.deepcopy(net)\n"
OTHERS = {"one": "pass", "two": "self.var = 0.9 * self.var + 0.1 * var"}


@pytest.mark.parametrize("other", OTHERS)
def test_the_lines_that_keep_the_graphs_are_the_cause_and_their_fix_is_first(other):
    cell = CELL.replace("OTHER", OTHERS[other]) + COPY
    (found,) = findings_of(cell)
    assert (found.kind, found.severity) == ("refused", "error")
    assert "self.mean.add_(mean * 0.1)` (In[1], line 11)" in found.text
    assert ("line 11) and `self.var = 0.9 *" in found.text) == (other == "two")
    assert "Only leaves can be copied" in found.text and "keep a graph there" in found.text.replace("keeps", "keep")
    fixed = apply(cell, found.fixes[0].edits)
    assert ".detach()" in fixed and "deepcopy(net)\n" in fixed and findings_of(fixed) == ()
    assert [one.id for one in found.fixes] == ["detach", "detach", "copy_weights"]


def test_what_was_computed_and_does_not_pile_up_is_told_as_before():
    cell = CELL.replace("OTHER", "self.last = x.sum()").replace("self.mean.add_(mean * 0.1)", "pass") + COPY
    (found,) = findings_of(cell)
    assert "a graph there" not in found.text and "last" in found.headline
    both = CELL.replace("OTHER", "self.last = x.sum()") + COPY
    assert [one.kind for one in findings_of(both)][:1] == ["refused"]
    assert "leak" in [one.kind for one in findings_of(both)]
