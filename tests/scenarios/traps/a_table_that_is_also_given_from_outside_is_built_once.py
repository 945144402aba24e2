# verified: recompute_in_loop
# says: before each use (In[1], line 14 and In[1], line 17)
# never says: @property | .detach()
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Tuner(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(n))
        self.table = torch.softmax(self.raw, 0)

    def load(self, table):
        self.table = table

    def mixed(self, x):
        return x @ self.table

    def entropy(self):
        return -(self.table * self.table.log()).sum()
tuner = Tuner(3)
opt = torch.optim.SGD(tuner.parameters(), 0.05)
x = torch.randn(8, 3)
# %%
for step in range(4):
    loss = (tuner.mixed(x) - x[:, 0]).pow(2).mean() - 0.01 * tuner.entropy()
    opt.zero_grad()
    loss.backward()
    opt.step()
