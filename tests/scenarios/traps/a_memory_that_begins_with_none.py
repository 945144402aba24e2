# verified: detach
# says: Store it detached: `net.memory = net.z.detach()` (In[3], line 8).
# never says: net.memory = net.memory.detach()
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.memory = nn.Linear(3, 4), None
    def loss(self, x):
        z = self.body(x)
        if self.memory is not None:
            z = z + 0.5 * self.memory
        self.z = z
        return z.pow(2).mean()
# %%
def fit(net, steps):
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(steps):
        loss = net.loss(torch.randn(2, 3))
        opt.zero_grad()
        loss.backward()
        opt.step()
        net.memory = net.z
fit(Net(), 4)
