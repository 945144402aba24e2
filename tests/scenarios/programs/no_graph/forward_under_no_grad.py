# title: Forward pass was run under no_grad
# kind: element0
# source: https://github.com/Lightning-AI/pytorch-lightning/issues/19910
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
x = torch.randn(4, 3)
# %%
with torch.no_grad():
    loss = net(x).pow(2).mean()
# %%
loss.backward()
