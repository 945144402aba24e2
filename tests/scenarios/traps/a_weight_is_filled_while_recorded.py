# verified: under_no_grad
# says: `net[0].weight` is a leaf that requires grad | through a view
# %%
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
net[0].weight[0] = 1.0
