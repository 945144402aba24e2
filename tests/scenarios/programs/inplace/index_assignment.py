# title: Writing time steps into one buffer by index
# kind: inplace
# source: https://github.com/pytorch/pytorch/issues/53348
# source: https://github.com/sunlicai/MAE-DFER/issues/15
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
rec = nn.Linear(3, 3)
state = torch.zeros(5, 3)
# %%
for t in range(1, 5):
    state[t] = torch.tanh(rec(state[t - 1]))
# %%
state.sum().backward()
