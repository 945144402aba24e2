# title: Sum of two losses, one backward
# kind: ok
# source: class of https://github.com/mosaicml/composer/pull/1240
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
h = trunk(torch.randn(6, 4)).relu()
loss = a(h).pow(2).mean() + 0.5 * b(h).abs().mean()
# %%
loss.backward()
