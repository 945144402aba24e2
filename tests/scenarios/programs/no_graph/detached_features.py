# title: The only way to the parameters was detached
# kind: element0
# truth: measured.json
# %%
import torch
from torch import nn
net = nn.Linear(3, 2)
# %%
feats = net(torch.randn(4, 3)).detach()
loss = feats.pow(2).mean()
# %%
loss.backward()
