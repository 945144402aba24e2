# title: Two losses, one net, first call retains
# kind: ok
# source: seed 001 (https://programmerah.com/solved-runtimeerror-trying-to-backward-through-the-graph-a-second-time-28387/)
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
params = [*trunk.parameters(), *a.parameters(), *b.parameters()]
opt = torch.optim.SGD(params, lr=.1)
x = torch.randn(6, 4)
# %%
for step in range(2):
    opt.zero_grad()
    h = trunk(x).relu()
    loss1, loss2 = a(h).pow(2).mean(), b(h).abs().mean()
    loss1.backward(retain_graph=True)
    loss2.backward()
    opt.step()
