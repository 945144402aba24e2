# %%
N = 20
import torch
from torch import nn

net = nn.Linear(6, 6)
opt = torch.optim.SGD(net.parameters(), 0.1)
avg = [p.detach().clone() for p in net.parameters()]
total = 0
# %%
for it in range(N):
    loss = net(torch.randn(3, 6)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        avg = [0.9 * a + 0.1 * p for a, p in zip(avg, net.parameters())]
    total += loss.detach()
