"""A sample that cuts the graph, where its object has a method whose result has one."""

from __future__ import annotations

import pytest
from told import with_lineage

from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import Finding

BEFORE = """from torch.distributions import Categorical, Distribution, Independent, Normal, OneHotCategorical
actor, critic = nn.Linear(2, {out}), nn.Linear({out}, 1)
opt = torch.optim.SGD(actor.parameters(), 0.1)
"""
TRAIN = """
for _ in range(3):
    loss = {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OWN = """
class Squashed(Distribution):
    has_rsample = True
    def __init__(self, mean):
        super().__init__(mean.shape, validate_args=False)
        self.base = Normal(mean, 1.0)
    def rsample(self, shape=()):
        return torch.tanh(self.base.rsample(shape))
    def sample(self, shape=()):
        with torch.no_grad():
            return self.rsample(shape)
"""
ACT = """
def act(s):
    dist = {dist}
    return dist.sample()
"""


def told(dist: str, loss: str = "-critic(act(torch.ones(4, 2))).mean()", out: int = 2) -> tuple[list[Finding], str]:
    cell = BEFORE.format(out=out) + OWN + ACT.format(dist=dist) + TRAIN.format(loss=loss)
    found = [one for one in with_lineage(cell) if one.severity == "warning"]
    return found, text_edit.apply(cell, found[0].fixes[0].edits) if found and found[0].fixes else ""


@pytest.mark.parametrize(
    "dist", ["Normal(actor(s), 1.0)", "Independent(Normal(actor(s), 1.0), 1)", "Squashed(actor(s))"]
)
def test_the_twin_is_written_where_the_method_is_called(dist: str) -> None:
    found, after = told(dist)
    assert len(found) == 1 and "dist.rsample()" in after and "`rsample` in place of `sample`" in found[0].fixes[0].text
    assert after.count("with torch.no_grad()") == 1  # that of the class itself stays


def test_a_class_beside_it_has_the_twin() -> None:
    found, after = told("OneHotCategorical(logits=actor(s))", out=3)
    assert "dist = OneHotCategoricalStraightThrough(logits=actor(s))" in after and "dist.rsample()" in after
    assert "OneHotCategorical, OneHotCategoricalStraightThrough" in after.splitlines()[0]
    assert len(found) == 1


def test_where_there_is_none_there_are_words() -> None:
    found, _ = told(
        "Categorical(logits=actor(s))", "-critic(nn.functional.one_hot(act(torch.ones(4, 2)), 3).float()).mean()", 3
    )
    assert len(found) == 1 and not any("rsample`" in line for one in found[0].fixes for line in one.edit)
    assert not found[0].fixes[0].edits


def test_a_sample_that_is_scored_is_left_alone() -> None:
    cell = BEFORE.format(out=2) + (
        "both = torch.optim.SGD([*actor.parameters(), *critic.parameters()], 0.1)\nfor _ in range(3):\n"
        "    dist = Normal(actor(torch.ones(4, 2)), 1.0)\n    a = dist.sample()\n"
        "    loss = (dist.log_prob(a).sum(1) * (critic(a).detach() - 1)).mean() + critic(a).pow(2).mean()\n"
        "    both.zero_grad()\n    loss.backward()\n    both.step()"
    )
    assert not [one for one in with_lineage(cell) if one.severity == "warning"]
