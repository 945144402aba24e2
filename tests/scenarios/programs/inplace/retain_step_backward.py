# title: Seed's Adam recipe with two layers: retain, step, backward again
# kind: inplace
# source: seed 000 (bobbyhadz.com article)
# source: https://github.com/pytorch/pytorch/issues/39141
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))
opt = torch.optim.Adam(net.parameters())
x, t = torch.randn(3, 5), torch.tensor([0, 1, 1])
loss = nn.functional.cross_entropy(net(x), t)
# %%
loss.backward(retain_graph=True)
opt.step()
opt.zero_grad()
# %%
loss.backward()
