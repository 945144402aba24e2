# verified: recompute_in_loop
# %%
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=.1)
reg = sum(p.pow(2).sum() for p in net.parameters())
# %%
for i in range(2):
    loss = net(torch.randn(4, 3)).pow(2).mean() + 1e-3 * reg
    opt.zero_grad()
    loss.backward()
    opt.step()
