# title: Time steps written into one buffer of a dict
# kind: inplace
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
cell = nn.Linear(2, 2)
store = {"h": torch.zeros(4, 2)}
# %%
for t in range(3):
    store["h"][t + 1] = torch.tanh(cell(store["h"][t]))
# %%
store["h"][-1].sum().backward()
