# title: TBPTT with detach_ and a two-layer state
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
lstm = nn.LSTM(2, 3, num_layers=2)
h = [torch.zeros(2, 1, 3), torch.zeros(2, 1, 3)]
# %%
for k in range(4):
    for s in h:
        s.detach_()
    y, h = lstm(torch.randn(3, 1, 2), h)
    y.sum().backward()
