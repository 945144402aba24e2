# title: loss.requires_grad_() makes the error go away and trains nothing
# kind: silent
# truth: measured.json
# %%
import torch
from torch import nn
net = nn.Linear(3, 1)
# %%
with torch.no_grad():
    out = net(torch.randn(4, 3))
loss = out.pow(2).mean()
loss.requires_grad_()
# %%
loss.backward()
