# %%
N = 10
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
# %%
losses = []
for i in range(N):
    losses.append(net(torch.randn(4, 3)).pow(2).mean())
# %%
opt.zero_grad()
sum(losses).backward()
opt.step()
losses.clear()
