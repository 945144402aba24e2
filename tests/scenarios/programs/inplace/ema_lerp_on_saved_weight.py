# title: The fast weights are pulled to the slow ones before the backward
# kind: inplace
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
fast, slow = nn.Linear(3, 3), nn.Linear(3, 3)
x = torch.randn(2, 3, requires_grad=True)
gap = fast(x).sub(1).abs().sum()
# %%
with torch.no_grad():
    for f, s in ((fast.bias, slow.bias), (fast.weight, slow.weight)):
        f.lerp_(s, 0.5)
# %%
gap.backward()
