# %%
N = 6
import torch
from torch import nn

a, b = nn.Linear(3, 1), nn.Linear(3, 1)
# %%
pending = []
for i in range(N):
    x = torch.randn(4, 3)
    a(x).pow(2).mean().backward()
    pending.append(b(x).pow(2).mean())
# %%
torch.stack(pending).mean().backward()
