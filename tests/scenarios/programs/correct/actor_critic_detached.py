# title: Actor-critic with detached advantage, two optimizers, two backwards
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 2), nn.Linear(3, 1)
        self.oa = torch.optim.SGD(self.actor.parameters(), 0.1)
        self.oc = torch.optim.SGD(self.critic.parameters(), 0.1)
    def learn(self, s, r):
        value = self.critic(s).squeeze(-1)
        adv = r - value
        self.oc.zero_grad()
        adv.pow(2).mean().backward()
        self.oc.step()
        dist = torch.distributions.Categorical(logits=self.actor(s))
        loss = -(dist.log_prob(dist.sample()) * adv.detach()).mean()
        self.oa.zero_grad()
        loss.backward()
        self.oa.step()
agent = Agent()
# %%
for _ in range(4):
    agent.learn(torch.randn(6, 3), torch.randn(6))
