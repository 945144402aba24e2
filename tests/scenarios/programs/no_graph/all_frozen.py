# title: All parameters frozen
# kind: element0
# source: class of https://github.com/weizheliu/People-Flows/issues/7
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
for p in net.parameters():
    p.requires_grad_(False)
# %%
loss = net(torch.randn(4, 3)).mean()
loss.backward()
