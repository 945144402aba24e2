# %%
N = 15
import torch
from torch import nn

q, k = nn.Linear(4, 3), nn.Linear(4, 3)
opt = torch.optim.SGD(q.parameters(), 0.1)
queue = torch.randn(3, 16)
# %%
for it in range(N):
    x = torch.randn(2, 4)
    query = q(x)
    with torch.no_grad():
        for a, b in zip(k.parameters(), q.parameters()):
            a.mul_(0.9).add_(b, alpha=0.1)
        key = k(x)
    loss = (query @ torch.cat([key.T, queue], 1)).logsumexp(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue = torch.cat([key.T, queue], 1)[:, :16]
