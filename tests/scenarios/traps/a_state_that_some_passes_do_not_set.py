# verified: detach
# says: `if h is not None: h = h.detach()`
# %%
import torch, torch.nn as nn
cell = nn.RNNCell(3, 4)
h = None
# %%
for t, x in enumerate(torch.randn(6, 2, 3)):
    loss = cell(x, h).pow(2).mean()
    loss.backward()
    if t % 2 == 0:
        h = cell(x, h)
