# verified: detach
# says: `b = net(torch.randn(1, 2)).detach().sum()` (In[1], line 4) leaves the graph
# never says: `a` 
# %%
import torch, torch.nn as nn
net = nn.Linear(2, 2)
a = net(torch.randn(1, 2)).sum()
b = net(torch.randn(1, 2)).detach().sum()
# %%
torch.autograd.backward([a, b])
