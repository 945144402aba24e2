# title: Every parameter frozen in a comprehension
# kind: element0
# truth: measured.json
# %%
import torch
from torch import nn
net = nn.Linear(3, 1)
[p.requires_grad_(False) for p in net.parameters()]
# %%
def total(x):
    return net(x).sum()
# %%
total(torch.randn(2, 3)).backward()
