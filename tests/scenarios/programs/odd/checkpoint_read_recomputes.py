# title: Checkpoint: reading a saved tensor would recompute the block
# kind: nasty
# source: https://github.com/pytorch/pytorch/pull/90105
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
from torch.utils.checkpoint import checkpoint
runs = []
def block(x):
    runs.append(1)
    return x.sin().exp()
# %%
x = torch.randn(3, requires_grad=True)
y = checkpoint(block, x, use_reentrant=False)
# %%
n_before = len(runs)
y.sum().backward()
n_after = len(runs)
