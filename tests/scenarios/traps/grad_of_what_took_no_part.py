# verified:
# says: none that ran is known to have reached it
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 1); extra = nn.Linear(3, 1)
loss = net(torch.randn(2, 3)).mean()
loss.backward()
norm = sum(p.grad.norm() for p in extra.parameters())
