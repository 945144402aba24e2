# %%
N = 32
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
# %%
total = 0.0
for i in range(N):
    loss = net(torch.randn(4, 3)).pow(2).mean() / 4
    loss.backward()
    total += loss.item()
    if i % 4 == 3:
        opt.step()
        opt.zero_grad()
