# verified: detach
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
cell = nn.LSTMCell(2, 3)
hc = (torch.zeros(1, 3), torch.zeros(1, 3))
best = None
for t in range(3):
    hc = cell(torch.randn(1, 2), hc)
    if best is None: best = hc[0]
    loss = (hc[0] - best).pow(2).sum() + hc[1].sum()
    loss.backward()
