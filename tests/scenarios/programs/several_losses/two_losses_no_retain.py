# title: Two losses share a trunk, no retain_graph
# kind: second_backward
# source: seed 001 (https://programmerah.com/solved-runtimeerror-trying-to-backward-through-the-graph-a-second-time-28387/)
# source: https://github.com/pytorch/xla/issues/1961
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
x = torch.randn(6, 4)
h = trunk(x).relu()
loss1 = a(h).pow(2).mean()
loss2 = b(h).abs().mean()
# %%
loss1.backward()
# %%
loss2.backward()
