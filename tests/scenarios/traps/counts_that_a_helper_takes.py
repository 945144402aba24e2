# verified:
# says: `counts = torch.histc(values, bins=4)` (In[2], line 2) leaves the graph: `histc` has no derivative
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Linear(3, 8)
# %%
def histogram(values):
    counts = torch.histc(values, bins=4)
    return counts / counts.sum()
out = net(torch.randn(2, 3))
loss = torch.stack([histogram(out[i]) for i in range(2)]).var()
loss.backward()
