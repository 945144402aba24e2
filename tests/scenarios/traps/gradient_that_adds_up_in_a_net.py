# verified:
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.randn(2, 3, requires_grad=True)
opt = torch.optim.SGD(net.parameters(), 0.1)
y = net(x).sum()
y.backward(create_graph=True)
gp = x.grad.norm()
opt.zero_grad(set_to_none=False)
# %%
gp.backward()
opt.step()
# %%
gp2 = x.grad.norm()
gp2.backward()
