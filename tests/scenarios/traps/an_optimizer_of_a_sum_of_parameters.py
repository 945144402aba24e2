# verified:
# says: `delta` and `net.weight` get no gradient through it.
# %%
import torch, torch.nn as nn
net, delta = nn.Linear(3, 3), nn.Parameter(torch.zeros(3, 3))
w = net.weight + delta
# %%
opt = torch.optim.SGD([w], lr=0.1)
