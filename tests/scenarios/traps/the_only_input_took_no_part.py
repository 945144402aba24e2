# verified:
# says: No path leads from `u` to `x`.
# never says: allow_unused
# %%
import torch, torch.nn as nn
x = torch.randn(5, 1, requires_grad=True)
net = nn.Linear(1, 1)
u = net(torch.tensor(x.tolist())).sum()
# %%
du = torch.autograd.grad(u, x)[0]
