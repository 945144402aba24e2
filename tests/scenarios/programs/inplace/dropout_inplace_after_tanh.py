# title: nn.Dropout(inplace=True) on a tanh
# kind: inplace
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
lin, drop = nn.Linear(3, 4), nn.Dropout(0.5, inplace=True)
# %%
h = torch.tanh(lin(torch.randn(2, 3)))
out = drop(h)
# %%
out.sum().backward()
