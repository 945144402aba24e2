# title: Re-entrant checkpoint, second backward
# kind: second_backward
# source: https://github.com/pytorch/pytorch/pull/90105
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
from torch.utils.checkpoint import checkpoint
block = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
x = torch.randn(2, 4, requires_grad=True)
loss = checkpoint(block, x, use_reentrant=True).sum()
# %%
loss.backward()
# %%
loss.backward()
