# title: Checkpointed blocks, non-reentrant, trained for a few steps
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.GELU()) for _ in range(3))
opt = torch.optim.SGD(blocks.parameters(), 0.1)
# %%
for step in range(3):
    h = torch.randn(2, 4)
    for block in blocks:
        h = checkpoint(block, h, use_reentrant=False)
    opt.zero_grad()
    h.pow(2).sum().backward()
    opt.step()
