# title: [l.backward() for l in losses] over one trunk
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid())
heads = [nn.Linear(4, 1) for _ in range(3)]
z = trunk(torch.randn(5, 3))
losses = [h(z).mean() for h in heads]
# %%
[l.backward() for l in losses]
