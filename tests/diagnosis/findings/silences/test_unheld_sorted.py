"""Weights of a loss that no optimizer holds, where all parameters of the model are sorted into groups."""

from __future__ import annotations

import pytest
from told import findings_of

from graphwidget.model import Finding

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_vars = nn.Parameter(torch.zeros(2))
    def forward(self, a, b):
        return (torch.exp(-self.log_vars) * torch.stack([a, b]) + self.log_vars).sum()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)
    def forward(self, x):
        y = self.head(self.body(x).relu())
        return y[:, 0].pow(2).mean(), y[:, 1].abs().mean()
net, crit = Net(), Weights()
"""
STEPS = """
for i in range(6):
    loss = crit(*net(torch.randn(5, 3)))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOOP = """decay, rest = [], []
for name, p in net.named_parameters():
    if not p.requires_grad:
        continue
    if name.endswith("bias"):
        rest.append(p)
    else:
        decay.append(p)
groups = [dict(params=decay, weight_decay=0.1), dict(params=rest)]
opt = torch.optim.AdamW(groups)"""
SHORT = """decay, rest = [], []
for p in net.parameters():
    (decay if p.ndim > 1 else rest).append(p)
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest}])"""
TWO = """opt = torch.optim.AdamW([
    {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 0.1},
    {"params": [p for p in net.parameters() if p.ndim <= 1]},
])"""
GROUP = ', {"params": crit.parameters()}'
SORTED = {
    "by a loop over names": (LOOP, [GROUP]),
    "by a loop in one line": (SHORT, ["[*net.parameters(), *crit.parameters()]"]),
    "by two comprehensions": (TWO, [GROUP]),
    "by a test and its negation": (TWO.replace("if p.ndim <= 1", "if not p.ndim > 1"), [GROUP]),
}


def untrained(*cells: str) -> list[Finding]:
    return [one for one in findings_of(*cells) if "no optimizer" in one.headline]


@pytest.mark.parametrize("how", SORTED)
def test_weights_that_are_left_out(how: str) -> None:
    made, edits = SORTED[how]
    (found,) = untrained(SETUP, made, STEPS)
    assert found.severity == "warning" and found.names == ("crit.log_vars",)
    assert [edit.new for edit in found.fixes[0].edits] == edits


TRAINER = """
class Base:
    def __init__(self, model, criterion):
        self.model, self.criterion = model, criterion
        self.optimizer = self.configure()
    def configure(self):
        decay, rest = [], []
        for p in self.model.parameters():
            (decay if p.ndim > 1 else rest).append(p)
        return torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest}])
class Trainer(Base):
    def fit(self):
        for i in range(6):
            self.optimizer.zero_grad()
            self.criterion(*self.model(torch.randn(5, 3))).backward()
            self.optimizer.step()
"""


def test_a_method_names_what_the_constructor_has_kept() -> None:
    (found,) = untrained(SETUP, TRAINER, "trainer = Trainer(net, crit)", "trainer.fit()")
    assert [edit.new for edit in found.fixes[0].edits] == ["[*self.model.parameters(), *self.criterion.parameters()]"]
    late = TRAINER.replace("        self.optimizer = self.configure()\n", "").replace(
        "        self.model, self", "        self.optimizer = None\n        self.model, self"
    )
    late = late.replace("    def fit(self):\n", "    def fit(self):\n        self.optimizer = self.configure()\n")
    (found,) = untrained(SETUP, late, "trainer = Trainer(net, crit)", "trainer.fit()")
    assert not found.fixes[0].edits


MEANT = {
    "the tests leave some out": TWO.replace("p.ndim <= 1", "p.ndim < 1"),
    "a loop takes some": SHORT.replace("    (decay", "    if p.ndim > 0: (decay"),
    "a loop passes some over": LOOP.replace("not p.requires_grad", "name.startswith('body')"),
    "a group of its own": LOOP.replace("AdamW(groups)", "AdamW([*groups, {'params': crit.parameters()}])"),
    "a group added later": LOOP + "\nopt.add_param_group({'params': crit.parameters()})",
    "a second optimizer": LOOP + "\nother = torch.optim.SGD(crit.parameters(), 0.1)",
    "frozen": LOOP + "\ncrit.requires_grad_(False)",
}


@pytest.mark.parametrize("what", MEANT)
def test_what_may_be_meant(what: str) -> None:
    steps = STEPS.replace("opt.step()", "opt.step()\n    other.step()") if "other" in MEANT[what] else STEPS
    assert not untrained(SETUP, MEANT[what], steps)


def test_steps_by_hand_train_them() -> None:
    step = (
        "\n    with torch.no_grad():\n        crit.log_vars -= 0.1 * crit.log_vars.grad\n    crit.log_vars.grad = None"
    )
    assert not untrained(SETUP, SHORT, STEPS.rstrip() + step)


def test_a_critic_that_was_given_is_no_warning() -> None:
    critic = """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(2, 1)
    def forward(self, a, b):
        return self.f(torch.stack([a, b])).pow(2).sum()
crit = Critic()"""
    (found,) = untrained(SETUP + critic, SHORT, STEPS)
    assert found.severity == "info"
    assert not untrained(SETUP + critic, "crit.load_state_dict(crit.state_dict())\n" + SHORT, STEPS)


def test_a_gradient_that_has_another_use() -> None:
    gated = "gate = nn.Parameter(torch.ones(2))\nscores = torch.zeros(2)\nopt = torch.optim.SGD(net.parameters(), 0.1)"
    steps = STEPS.replace("crit(*net(torch.randn(5, 3)))", "(torch.stack(net(torch.randn(5, 3))) * gate).sum()")
    assert not untrained(SETUP, gated, steps + "    scores += gate.grad.abs()\n    gate.grad = None\n")
    assert untrained(SETUP, gated, steps + "    print(gate.grad)\n    gate.grad = None\n")
