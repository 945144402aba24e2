# title: The shared encoder is stepped before the second loss runs backward
# kind: inplace
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
enc = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
opt = torch.optim.SGD(enc.parameters(), 0.5)
code = enc(torch.randn(4, 3))
first, second = code.mean(), code.pow(2).mean()
# %%
first.backward(retain_graph=True)
opt.step()
# %%
second.backward()
