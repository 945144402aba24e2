"""Totals that objects keep with their graphs, several objects of one class."""

import pytest
from told import findings_of

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
