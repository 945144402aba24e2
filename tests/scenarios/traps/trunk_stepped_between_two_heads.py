# verified: recompute_in_loop detach
# says: Then `trunk[0].bias` and `trunk[0].weight` get no gradient from either call
# %%
import torch
from torch import nn
torch.manual_seed(0)
trunk, one, two = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 1), nn.Linear(4, 1)
opt1 = torch.optim.SGD([*trunk.parameters(), *one.parameters()], lr=0.1)
opt2 = torch.optim.SGD([*trunk.parameters(), *two.parameters()], lr=0.1)
x = torch.randn(8, 4)
# %%
for it in range(2):
    z = trunk(x)
    loss1, loss2 = one(z).pow(2).mean(), two(z).pow(2).mean()
    opt1.zero_grad()
    loss1.backward()
    opt1.step()
    opt2.zero_grad()
    loss2.backward()
    opt2.step()
