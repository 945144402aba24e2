# verified:
# never says: re-entrant
# %%
import torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.block, self.out = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2)
        self.unused = nn.Linear(2, 2)
    def forward(self, x):
        return self.out(checkpoint(self.block, self.first(x), use_reentrant=True))
net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
# %%
for i in range(3):
    loss = net(torch.randn(4, 6)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
