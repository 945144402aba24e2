# title: x[mask] = 0 on data, += on a sum, clamp_ on a fresh result: all allowed
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 4)
x = torch.randn(3, 4)
# %%
mask = x < 0
x[mask] = 0
h = net(x)
h += 1
acc = torch.zeros(())
for row in h:
    acc += (row * 2).sum()
h2 = net(x) + 0
h2.clamp_(min=0)
# %%
(acc + h2.sum()).backward()
