# verified:
# says: Skip what is frozen: read it only where `p.grad is not None`.
# never says: Let `p` require grad
# %%
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
net[0].requires_grad_(False)
net(torch.randn(2, 3)).sum().backward()
# %%
for p in net.parameters():
    print(p.grad.norm())
