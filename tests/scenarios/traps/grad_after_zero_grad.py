# verified:
# says: A backward wrote to it.
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 2, 3):
    net(x).mean().backward()
    opt.step()
    opt.zero_grad()
    print(net.weight.grad.norm())
