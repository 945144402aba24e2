# title: The gradient penalty was computed without create_graph
# kind: element0
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

D = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(6, 2, requires_grad=True)
# %%
(slope,) = torch.autograd.grad(D(x).sum(), x)
penalty = (slope.norm(2, dim=1) - 1).square().mean()
penalty.backward()
