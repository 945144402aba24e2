"""Totals that objects keep with their graphs, several objects of one class."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

PROGRAM = """
class Metric:
    def __init__(self):
        self.total = 0.0
    def update(self, pred):
        LINE
net = nn.Linear(2, 1)
metrics = {"a": Metric(), "b": Metric()}
for _ in range(10):
    out = net(torch.ones(1, 2)).exp()
    for one in metrics.values():
        one.update(out)
    out.sum().backward()
"""


@pytest.mark.parametrize(
    "line", ["self.total = self.total + pred.square().sum()", "self.total = pred.square().sum() + self.total"]
)
def test_what_is_added_is_detached_where_it_is_added(line):
    (found,) = findings_of(PROGRAM.replace("LINE", line))
    fix = found.fixes[0]
    assert (fix.id, fix.verified, fix.at[1], [edit.new for edit in fix.edits]) == ("detach", True, 6, [".detach()"])
    assert f"Write `{line.replace('.sum()', '.sum().detach()')}`" in fix.text
    assert found.stored_at.line == 6


UNROLLED = """
rule = nn.Linear(1, 1)
opt = torch.optim.SGD(rule.parameters(), 0.1)
def run():
    w = torch.ones(3, requires_grad=True)
    for unroll in range(2):
        total = 0
        for t in range(5):
            loss = (w * torch.arange(3.0)).pow(2).sum()
            total = total + loss
            (grad,) = torch.autograd.grad(loss, w, retain_graph=True)
            w = w + rule(grad[:, None])[:, 0] * 0.01
        opt.zero_grad()
        total.backward()
        opt.step()
        CUT
"""


@pytest.mark.parametrize(("cut", "told"), [("pass", ["second_backward"]), ("w = w.detach().requires_grad_()", [])])
def test_a_total_that_a_call_was_to_run_does_not_pile_up_because_that_call_raised(cut, told):
    assert [one.kind for one in findings_of(UNROLLED.replace("CUT", cut), "run()")] == told


AVERAGES = """
def train(net):
    first, second = None, None
    for _ in range(12):
        a, b = net(torch.ones(1, 2)).exp(), net(torch.zeros(1, 2)).exp()
        (a + b).sum().backward()
        if first is None:
            first, second = a.sum(), b.sum()
        else:
            first = 0.9 * first + 0.1 * a.sum()
            second = 0.9 * second + 0.1 * b.sum()
    return first, second
mean, other = train(nn.Linear(2, 1))
"""


def test_averages_of_one_block_are_detached_together_and_told_by_their_lines():
    found = findings_of(AVERAGES)
    assert [one.carriers for one in found] == [("mean",), ("other",)]
    assert "by `first = 0.9 * first + 0.1 * a.sum()` (In[1], line 10" in found[0].text
    assert "And the same for `other`, which piles up, too." in found[0].fixes[0].text
    assert not findings_of(text_edit.apply(AVERAGES, found[0].fixes[0].edits))


AVERAGED = """
net = nn.Linear(2, 1)
def step():
    loss = net(torch.ones(1, 2)).exp().sum()
    loss.backward()
    return loss
def train():
    total = torch.tensor(0.0)
    for _ in range(10):
        LINE
    return {"mean": total / 10}
out = train()
"""


@pytest.mark.parametrize("line", ["total += step()", "total = total + step()"])
def test_a_sum_that_is_kept_under_another_name_is_detached_where_each_pass_is_added(line):
    (found,) = findings_of(AVERAGED.replace("LINE", line))
    assert found.carriers == ("out['mean']",)
    fixed = text_edit.apply(AVERAGED.replace("LINE", line), found.fixes[0].edits)
    assert line.replace("step()", "step().detach()") in fixed and not findings_of(fixed)


def test_statistics_that_are_written_in_several_steps_are_written_without_a_graph():
    cell = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate, self.weight = 0.1, nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3))
    def forward(self, x):
        mean, var = x.mean(0), x.var(0)
        self.mean.mul_(1 - self.rate).add_(mean * self.rate)
        self.var.mul_(1 - self.rate).add_(var * self.rate)
        return self.weight * (x - mean) / var.sqrt()
first, norm = nn.Linear(3, 3), Norm()
for _ in range(10):
    norm(first(torch.randn(5, 3))).exp().sum().backward()
"""
    for one in findings_of(cell):
        fixed = text_edit.apply(cell, one.fixes[0].edits)
        assert one.fixes[0].id == "under_no_grad" and fixed.count("with torch.no_grad():") == 2
        assert not findings_of(fixed)


def test_means_of_several_epochs_join_nothing_and_the_line_of_the_sum_does():
    cell = """
net = nn.Linear(2, 1)
class Running:
    def __init__(self):
        self.s, self.n = 0.0, 0
    def push(self, v, k):
        self.s = self.s + v * k
        self.n += k
def epoch(r):
    for _ in range(5):
        loss = net(torch.ones(1, 2)).exp().sum()
        loss.backward()
        r.push(loss, 3)
    return {"mean": r.s / r.n}
logs = [epoch(Running()) for _ in range(3)]
"""
    (found,) = findings_of(cell)
    fixed = text_edit.apply(cell, found.fixes[0].edits)
    assert "self.s = self.s + (v * k).detach()" in fixed and not findings_of(fixed)
