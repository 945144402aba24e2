# verified: detach
# says: `d` was built in In[1], line 10, iteration 0. | Iteration 1 reaches the same node through `d`.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
enc, dec = nn.GRUCell(2, 3), nn.GRUCell(2, 3)
h = torch.zeros(1, 3)
for t in range(2):
    h = enc(torch.randn(1, 2), h)
ctx = h.relu()
d = h
for t in range(3):
    d = dec(torch.randn(1, 2), d)
    loss = (d * ctx).sum()
    loss.backward()
