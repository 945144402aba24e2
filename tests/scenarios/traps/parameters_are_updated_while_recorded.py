# verified: under_no_grad
# says: `p` is a leaf that requires grad
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 1)
net(torch.randn(4, 3)).mean().backward()
for p in net.parameters():
    p -= 0.1 * p.grad
