# %%
N = 20
import torch
from torch import nn

nets = {"a": nn.Linear(2, 1), "b": nn.Linear(2, 1), "c": nn.Linear(2, 1)}
last = {}
# %%
for epoch in range(N):
    for name, net in nets.items():
        last[name] = net(torch.randn(3, 2))
        last[name].pow(2).mean().backward()
