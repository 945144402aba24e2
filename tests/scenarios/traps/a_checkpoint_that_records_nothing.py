# verified:
# says: is re-entrant, and was in the graph of no call | use_reentrant=False
# %%
import torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.out = nn.Linear(6, 6), nn.Linear(6, 2)
    def forward(self, x):
        h = checkpoint(self.block, x, use_reentrant=True)
        return self.out(h)
net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
# %%
for i in range(3):
    loss = net(torch.randn(4, 6)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
