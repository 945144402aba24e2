# %%
N = 15
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.Adam(net.parameters())
# %%
for it in range(N):
    x = torch.randn(4, 3, requires_grad=True)
    out = net(x)
    (g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    loss = out.pow(2).mean() + (g.norm(dim=1) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
