# title: Two nets, two optimizers, a step between the two backward calls
# kind: inplace
# source: seed 001 (https://programmerah.com/solved-runtimeerror-trying-to-backward-through-the-graph-a-second-time-28387/)
# source: https://github.com/pytorch/pytorch/issues/39141
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net1 = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4))
net2 = nn.Linear(4, 1)
opt1 = torch.optim.SGD(net1.parameters(), lr=.1)
opt2 = torch.optim.SGD(net2.parameters(), lr=.1)
x = torch.randn(5, 3)
mid = net1(x)
loss1 = mid.pow(2).mean()
loss2 = net2(mid).pow(2).mean()
# %%
opt1.zero_grad()
loss1.backward(retain_graph=True)
opt1.step()
# %%
opt2.zero_grad()
loss2.backward()
opt2.step()
