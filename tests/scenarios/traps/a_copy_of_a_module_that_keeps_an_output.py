# verified: detach
# says: `net.cache` was computed in In[1], line 4.
# %%
import torch, torch.nn as nn, copy
torch.manual_seed(0)
net = nn.Linear(3, 2)
net.cache = net(torch.randn(1, 3))
target = copy.deepcopy(net)
