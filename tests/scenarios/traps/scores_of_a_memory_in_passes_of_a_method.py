# verified: detach
# says: Use `proposed.detach()` in
# never: sampler.draw(torch.randn(2))` (In[2], line 3) again
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Memory:
    def __init__(self):
        self.points, self.scores = [], []
    def keep(self, point, score):
        self.points.append(point)
        self.scores.append(score)
    def taken(self):
        found = torch.stack(self.points), torch.stack(self.scores)
        self.points, self.scores = [], []
        return found
class Sampler:
    def __init__(self):
        self.mean = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 1))
        self.steps = torch.optim.SGD(self.mean.parameters(), lr=0.05)
        self.memory = Memory()
    def draw(self, place):
        law = torch.distributions.Normal(self.mean(place), 0.5)
        value = law.sample()
        self.memory.keep(torch.cat([place, value]), law.log_prob(value).sum())
    def fit(self, passes=3):
        points, proposed = self.memory.taken()
        for _ in range(passes):
            law = torch.distributions.Normal(self.mean(points[:, :2]), 0.5)
            weights = torch.exp(law.log_prob(points[:, 2:]).sum(1) - proposed)
            cost = (weights * points[:, 2].pow(2)).mean()
            self.steps.zero_grad()
            cost.backward()
            self.steps.step()
# %%
sampler = Sampler()
for number in range(24):
    sampler.draw(torch.randn(2))
    if number % 12 == 11:
        sampler.fit()
