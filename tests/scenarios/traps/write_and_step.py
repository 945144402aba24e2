# verified:
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), 0.1)
a = net[1](net[0](torch.randn(2, 3)))
l1 = net[2](a).sum(); l2 = net[2](a).pow(2).sum()
l1.backward(retain_graph=True)
a.data.mul_(2)
with torch.no_grad(): a.add_(1)
opt.step()
# %%
l2.backward()
