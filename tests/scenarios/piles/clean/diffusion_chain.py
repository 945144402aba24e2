# %%
N = 6
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
# %%
for step in range(N):
    x = torch.randn(2, 4)
    for t in range(20):
        x = x - 0.05 * net(x)
    loss = x.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
