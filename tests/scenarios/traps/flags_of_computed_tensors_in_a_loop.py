# verified:
# says: Use `o.detach()` where it is read.
# never says: o = o.detach()
# %%
import torch, torch.nn as nn
net = nn.Linear(2, 2)
outputs = [net(torch.randn(1, 2)) for _ in range(3)]
for o in outputs:
    o.requires_grad_(False)
