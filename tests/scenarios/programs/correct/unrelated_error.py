# title: An error that has nothing to do with autograd
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
net = nn.Linear(3, 2)
# %%
net(torch.randn(4, 5)).sum().backward()
# %%
net(torch.randn(4, 3)).sum().backward()
