# verified:
# says: No gradient flows back through the array.
# never says: y.detach()
# %%
import torch, torch.nn as nn, numpy as np
net = nn.Linear(3, 1)
x, y = torch.randn(4, 3), torch.randn(4, 1)
# %%
for i in range(2):
    p = net(x)
    loss = torch.tensor(np.abs(p.numpy() - y.numpy()).mean())
    loss.backward()
