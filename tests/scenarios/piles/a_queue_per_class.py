# holder: bank
# iterations: N
# %%
N = 16
import torch
from torch import nn

net = nn.Linear(4, 3)
bank = {}
# %%
for i in range(N):
    feature = net(torch.randn(1, 4)).tanh()
    feature.sum().backward()
    bank.setdefault(i % 3, []).append(feature)
