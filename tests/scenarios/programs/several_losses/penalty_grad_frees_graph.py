# title: Gradient penalty without create_graph: grad frees what the loss needs
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
disc = nn.Sequential(nn.Linear(3, 4), nn.Softplus(), nn.Linear(4, 1))
x = torch.randn(5, 3, requires_grad=True)
# %%
score = disc(x)
gx, = torch.autograd.grad(score.sum(), x)
loss = score.mean() + gx.pow(2).sum()
loss.backward()
