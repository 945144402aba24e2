# title: PINN: du/dx, then du/dt from the same u
# kind: second_backward
# source: class of https://github.com/NeuroDiffGym/neurodiffeq/issues/83
# source: https://github.com/tinygrad/tinygrad/pull/5701
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.rand(5, 1, requires_grad=True)
t = torch.rand(5, 1, requires_grad=True)
u = net(torch.cat([x, t], 1))
# %%
u_x, = torch.autograd.grad(u.sum(), x)
# %%
u_t, = torch.autograd.grad(u.sum(), t)
