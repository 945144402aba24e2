# verified: detach
# says: Store it detached: `self.last = value.detach()` (In[2], line 11).
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
# %%
class Agent:
    def __init__(self):
        self.q, self.last = nn.Linear(4, 2), None
    def observe(self, state, reward):
        value = self.q(state).max()
        if self.last is not None:
            loss = (reward + 0.9 * value - self.last) ** 2
            self.q.zero_grad()
            loss.backward()
            torch.optim.SGD(self.q.parameters(), 0.1).step()
        self.last = value
# %%
agent = Agent()
for t in range(4):
    agent.observe(torch.randn(4), 1.0)
