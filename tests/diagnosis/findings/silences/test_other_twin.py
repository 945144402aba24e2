"""An optimizer made of the target network's parameters; and twins of which one feeds the other."""

import pytest
from told import findings_of, with_lineage

from graphwidget.model import Finding

AGENT = """class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = nn.Linear(3, width), nn.Linear(width, 1)
    def forward(self, x):
        return self.two(torch.tanh(self.one(x)))
class Agent:
    def __init__(self):
        self.critic = Net(4)
        self.critic_target = Net(4).to("cpu")
        self.optim = torch.optim.Adam(self.critic_target.parameters(), lr=0.1)
    def soft_update(self):
        for old, new in zip(self.critic_target.parameters(), self.critic.parameters()):
            old.data.copy_(0.9 * old.data + 0.1 * new.data)
    def update(self, state):
        {target}
        loss = (self.critic(state) - goal).pow(2).mean()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        self.soft_update()
"""
RUN = "agent = Agent()\nfor _ in range(3):\n    agent.update(torch.randn(5, 3))"


def idle(found: tuple[Finding, ...]) -> Finding:
    return next(one for one in found if one.headline.endswith("changed nothing."))


@pytest.mark.parametrize("found_in", [findings_of, with_lineage])
@pytest.mark.parametrize(
    "target",
    [
        "with torch.no_grad():\n            goal = 1 + 0.9 * self.critic_target(state)",
        "goal = 1 + 0.9 * self.critic_target(state).detach()",
        "goal = 0.5",
    ],
)
def test_the_optimizer_of_the_target_is_told_and_not_its_cut(target: str, found_in) -> None:  # type: ignore[no-untyped-def]
    cell = AGENT.format(target=target)
    found = idle(found_in(cell, RUN))
    assert found.cause is not None and found.cause.line == 11
    assert "built alike" in found.text and "no_grad" not in found.text and "cuts the graph" not in found.text
    assert found.fixes[0].id == "new_optimizer"
    assert found.fixes[0].edit[-1].strip() == "+ self.optim = torch.optim.Adam(self.critic.parameters(), lr=0.1)"
    fixed = cell.replace("Adam(self.critic_target", "Adam(self.critic")
    assert not any(one.headline.endswith("changed nothing.") for one in found_in(fixed, RUN))


def test_a_cut_between_two_equal_parts_is_the_cut() -> None:
    cell = """class Pair:
    def __init__(self):
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.optim = torch.optim.SGD(self.first.parameters(), 0.1)
    def update(self, x):
        middle = self.first(x).detach()
        loss = self.second(middle).pow(2).mean()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()"""
    found = findings_of(cell, "pair = Pair()\nfor _ in range(3): pair.update(torch.randn(5, 3))")
    assert all("built alike" not in one.text for one in found)


def test_twins_of_other_sizes_are_no_twins() -> None:
    cell = AGENT.format(target="goal = 1 + self.critic_target(state).detach()").replace("Net(4).to", "Net(5).to")
    cell = cell.replace("self.soft_update()", "pass")
    assert all("built alike" not in one.text for one in findings_of(cell, RUN))
