# holder: seen
# iterations: N
# %%
N = 10
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def keep(module, args, out, seen=[]):
    seen.append(out)


net[1].register_forward_hook(keep)
# %%
for i in range(N):
    net(torch.randn(2, 3)).sum().backward()
