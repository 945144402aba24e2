# %%
N = 6
import torch
from torch import nn

trunk, heads = nn.Linear(3, 4), nn.ModuleList(nn.Linear(4, 1) for _ in range(5))
# %%
for it in range(N):
    features = trunk(torch.randn(2, 3)).tanh()
    outs = [head(features) for head in heads]
    losses = [out.pow(2).mean() for out in outs]
    for loss in losses:
        loss.backward(retain_graph=True)
