# verified: recompute_in_loop
# %%
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x1, x2 = torch.randn(5, 3), torch.randn(5, 3)
# %%
l1 = net(x1).pow(2).mean()
l2 = net(x2).pow(2).mean()
opt.zero_grad()
l1.backward()
opt.step()
opt.zero_grad()
l2.backward()
opt.step()
