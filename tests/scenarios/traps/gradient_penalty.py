# verified: remove_duplicate_call retain_graph_earlier_call
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
D = nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 1))
real, fake = torch.randn(4, 3), torch.randn(4, 3)
a = torch.rand(4, 1)
xi = (a * real + (1 - a) * fake).requires_grad_()
d = D(xi)
g, = torch.autograd.grad(d, xi, torch.ones_like(d), create_graph=True)
gp = ((g.norm(2, dim=1) - 1) ** 2).mean()
loss = d.mean() + gp
# %%
gp.backward()
# %%
loss.backward()
