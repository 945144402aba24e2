# title: A step and a zero_grad stand between two losses of one network
# kind: inplace
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), 0.5)
x = torch.randn(4, 3)
# %%
out = net(x)
loss_a = out[:, 0].pow(2).mean()
loss_b = out[:, 1].pow(2).mean()
# %%
opt.zero_grad()
loss_a.backward(retain_graph=True)
opt.step()
opt.zero_grad()
loss_b.backward()
opt.step()
