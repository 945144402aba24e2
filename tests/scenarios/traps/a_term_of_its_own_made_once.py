# verified: recompute_in_loop
# says: Move `u = net(x)`
# never says: detach
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), 0.01)
x = torch.linspace(0, 1, 9).view(-1, 1).requires_grad_()
# %%
u = net(x)
slope = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
residual = slope + u
for epoch in range(3):
    loss_pde = (residual ** 2).mean()
    loss = loss_pde + net(torch.zeros(1, 1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
