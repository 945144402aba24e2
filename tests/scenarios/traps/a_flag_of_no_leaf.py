# verified:
# says: `out` was computed in In[1], line 3
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 3)
out = net(torch.randn(2, 3))
out.requires_grad = False
