# verified: recompute_in_loop
# %%
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(5, 3), torch.randn(5, 1)
l2 = net[0].weight.norm() + net[1].weight.norm()
# %%
for i in range(3):
    loss = (net(x) - y).pow(2).mean() + 0.1 * l2
    opt.zero_grad()
    loss.backward()
    opt.step()
