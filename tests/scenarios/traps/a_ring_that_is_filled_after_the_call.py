# verified: detach
# says: Store it detached: `self.items[self.i % len(self.items)] = z.detach()` (In[2], line 5).
# never says: ring.items = [
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
# %%
class Ring:
    def __init__(self, n):
        self.items, self.i = [None] * n, 0
    def push(self, z):
        self.items[self.i % len(self.items)] = z
        self.i += 1
    def distance(self, z):
        there = [one for one in self.items if one is not None]
        return sum((z - one).pow(2).mean() for one in there) if there else 0.0
# %%
net, ring = nn.Linear(3, 3), Ring(3)
opt = torch.optim.SGD(net.parameters(), 0.1)
for step in range(5):
    z = net(torch.randn(2, 3)).tanh()
    loss = z.pow(2).mean() + ring.distance(z)
    opt.zero_grad()
    loss.backward()
    opt.step()
    ring.push(z)
