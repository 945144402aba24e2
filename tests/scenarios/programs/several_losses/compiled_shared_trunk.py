# title: torch.compile'd trunk shared by two losses
# kind: second_backward
# source: https://github.com/unslothai/unsloth/issues/3543
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
trunk = torch.compile(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), backend="aot_eager")
h = trunk(torch.randn(2, 3))
l1, l2 = h.sum(), h.pow(2).sum()
# %%
l1.backward()
# %%
l2.backward()
