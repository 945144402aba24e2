"""Values that a line writes into a tensor without a graph: a learned optimizer, an inner loop, and what is no such."""

import pytest
from told import with_lineage

LEARNED = """
rule = nn.Linear(3, 3)
opt = torch.optim.SGD(rule.parameters(), 0.1)
class Problem:
    def __init__(self):
        self.theta = torch.ones(3, requires_grad=True)
class Inner:
    def __init__(self, problem, rule):
        self.problem, self.step_of = problem, rule
    def step(self):
        g, = torch.autograd.grad(self.problem.theta.pow(2).sum(), self.problem.theta)
        update = self.step_of(g)
        {write}
"""
TRAIN = """
for _ in range({passes}):
    problem = Problem()
    inner = Inner(problem, rule)
    inner.step()
    opt.zero_grad()
    problem.theta.pow(2).sum().backward()
    opt.step()
"""
NEW = "self.problem.theta = self.problem.theta"


@pytest.mark.parametrize(
    ("write", "new"),
    [
        ("self.problem.theta.data.add_(update)", f"{NEW} + update"),
        ("self.problem.theta.data -= update * 2", f"{NEW} - update * 2"),
        ("self.problem.theta.data = self.problem.theta.data - update", f"{NEW} - update"),
        ("self.problem.theta.detach().copy_(update)", "self.problem.theta = update"),
        ("with torch.no_grad(): self.problem.theta.add_(update, alpha=2)", f"{NEW}.add(update, alpha=2)"),
    ],
)
def test_an_optimizer_that_moves_nothing_is_told_with_the_line_that_writes(write: str, new: str) -> None:
    (found,) = with_lineage(LEARNED.format(write=write), TRAIN.format(passes=1))
    assert found.headline == "`opt.step()` changed nothing."
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 13)
    assert "only the values" in found.text and "makes a new leaf" not in found.text
    edit = found.fixes[0].edit
    assert f"+ {new}" in edit and any("retain_graph=True" in line for line in edit)


def test_a_block_without_grad_mode_goes_with_the_write() -> None:
    write = "with torch.no_grad():\n            self.problem.theta.add_(update, alpha=2)"
    (found,) = with_lineage(LEARNED.format(write=write), TRAIN.format(passes=2))
    assert f"+ {NEW}.add(update, alpha=2)" in found.fixes[0].edit


COMPUTED = """
start, rule = nn.Linear(1, 3), nn.Linear(3, 3)
opt = torch.optim.SGD([*start.parameters(), *rule.parameters()], 0.1)
for _ in range(3):
    theta = start(torch.ones(1))
    {write}
    opt.zero_grad()
    theta.pow(2).sum().backward()
    opt.step()
"""


def test_a_computed_tensor_takes_values_too_through_a_view() -> None:
    (found,) = with_lineage(COMPUTED.format(write="theta.data.sub_(rule(torch.ones(3)))"))
    assert found.headline == "`rule.weight` and `rule.bias` have had no gradient in any step of the optimizer."
    assert "+ theta = theta - rule(torch.ones(3))" in found.fixes[0].edit


def test_a_list_of_leaves_becomes_a_list_of_new_tensors() -> None:
    cell = """
rates = nn.Parameter(torch.ones(2))
opt = torch.optim.SGD([rates], 0.1)
for _ in range(2):
    ws = [torch.ones(3, requires_grad=True), torch.ones(1, requires_grad=True)]
    for w, rate in zip(ws, rates):
        w.data.mul_(rate)
    opt.zero_grad()
    (ws[0].sum() * ws[1]).sum().backward()
    opt.step()
"""
    (found,) = with_lineage(cell)
    assert "+ ws = [w * rate for w, rate in zip(ws, rates)]" in found.fixes[0].edit


def test_averages_targets_normalized_weights_and_steps_by_hand_are_no_findings() -> None:
    cell = """
net, target = nn.Linear(3, 3), nn.Linear(3, 3)
code = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([*net.parameters(), code], 0.1)
own = torch.ones(3, requires_grad=True)
mean = torch.zeros(3)
for _ in range(3):
    h = net(code) * own
    mean.data.mul_(0.9).add_(0.1 * h)
    opt.zero_grad()
    own.grad = None
    (h - target(code).detach() - mean).pow(2).sum().backward()
    opt.step()
    own.data -= 0.1 * own.grad
    code.data = code / code.norm()
    net.weight.data.copy_(net.weight / net.weight.norm())
    for t, p in zip(target.parameters(), net.parameters()):
        t.data.copy_(0.9 * t + 0.1 * p)
"""
    assert [one.headline for one in with_lineage(cell) if one.severity != "info"] == []
