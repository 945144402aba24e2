# verified:
# says: would replace it by a computed tensor
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 1)
x = torch.randn(5, 3)
net(x).mean().backward()
net.weight = net.weight - 0.1 * net.weight.grad
