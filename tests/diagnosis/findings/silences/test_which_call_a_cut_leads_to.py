"""Of several lines that leave the graph, the one whose values went into the root of the call in question."""

from __future__ import annotations

from told import with_lineage

ACTOR_CRITIC = """
from torch.distributions import Normal
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.std = nn.Linear(3, 2), nn.Linear(3, 2)
    def forward(self, obs):
        return torch.tanh(Normal(self.mean(obs), self.std(obs).exp()).sample())
actor, critic, target = Policy(), nn.Linear(5, 1), nn.Linear(5, 1).requires_grad_(False)
opt_a, opt_c = (torch.optim.SGD(net.parameters(), lr=0.01) for net in (actor, critic))
def critic_loss(obs):
    with torch.no_grad():
        wanted = target(torch.cat([obs, actor(obs)], 1))
    return (critic(torch.cat([obs, torch.rand(4, 2)], 1)) - wanted).pow(2).mean()
def actor_loss(obs):
    return -critic(torch.cat([obs, actor(obs)], 1)).mean()
"""
TRAIN = """
for _ in range(4):
    obs = torch.rand(4, 3)
    opt_c.zero_grad()
    critic_loss(obs).backward()
    opt_c.step()
    opt_a.zero_grad()
    actor_loss(obs).backward()
    opt_a.step()
"""


def test_a_sample_for_the_actor_is_told_beside_a_target_without_a_graph() -> None:
    (found,) = with_lineage(ACTOR_CRITIC, TRAIN)
    assert found.headline == "`opt_a.step()` changed nothing."
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 8)
    assert "`sample` has no derivative" in found.text and "rsample()" in found.fixes[0].edit[1]
