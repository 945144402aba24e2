# title: A forward hook appends activations with their graph
# kind: leak
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
acts = []
net[1].register_forward_hook(lambda m, i, o: acts.append(o))
# %%
for x in torch.randn(5, 2, 3):
    net(x).sum().backward()
    net.zero_grad()
