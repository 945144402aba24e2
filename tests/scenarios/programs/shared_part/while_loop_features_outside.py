# title: Features encoded once, head fitted in a while loop
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
enc, head = nn.Linear(4, 3), nn.Linear(3, 1)
feats = enc(torch.randn(6, 4)).relu()
# %%
k = 0
while k < 3:
    cost = head(feats).pow(2).mean()
    cost.backward()
    k += 1
