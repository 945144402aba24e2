# verified:
# never says: no gradient in any step
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.later = nn.Linear(3, 3), nn.Linear(3, 1)
    def forward(self, x, stage=1):
        h = self.body(x)
        return self.later(h) if stage == 2 else h
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(4, 3)).pow(2).sum().backward()
    opt.step()
print(net.later.weight.norm().item())
