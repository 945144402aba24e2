# ruff: noqa
# A lecture in one notebook, section after section. Several of its calls raise.
# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(5, 2)
loss = nn.functional.cross_entropy(net(torch.randn(3, 5)), torch.tensor([0, 1, 1]))
# %%
loss.backward()
# %%
loss.backward()
# %%
loss = nn.functional.cross_entropy(net(torch.randn(3, 5)), torch.tensor([0, 1, 1]))
loss.backward(retain_graph=True)
loss.backward(retain_graph=True)
loss.backward()
# %%
loss = nn.functional.cross_entropy(net(torch.randn(3, 5)), torch.tensor([0, 1, 1]))
loss.backward(retain_graph=True)
once = net.weight.grad.clone()
net.zero_grad()
loss.backward(retain_graph=True)
torch.equal(once, net.weight.grad)
# %%
x = torch.ones(1, requires_grad=True)
total = x + 1
total.backward()
total.backward()
x.grad
# %%
product = x * 3
product.backward()
product.backward()
# %%
mse = nn.MSELoss()
x = torch.tensor([1.0, 0.0], dtype=torch.float64)
t = torch.eye(2, dtype=torch.float64, requires_grad=True)
a = torch.ones(2, dtype=torch.float64, requires_grad=True)
y = t @ a
# %%
for it in range(2):
    x_out = t @ (x + y)
    loss = mse(x_out, x)
    loss.backward()
# %%
for it in range(2):
    y = t @ a
    x_out = t @ (x + y)
    loss = mse(x_out, x)
    loss.backward()
# %%
torch.manual_seed(0)
inputs, goal = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0])
fc1, fc2 = nn.Linear(3, 5), nn.Linear(5, 1)
optimizer = torch.optim.SGD([*fc1.parameters(), *fc2.parameters()], lr=0.01)
# %%
temp = []
for i in range(10):
    h = fc1(inputs)
    out = fc2(h)
    temp.append(h)
    if i != 0:
        out = out + temp[0].mean()
    loss = nn.functional.mse_loss(out, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# %%
temp = []
for i in range(10):
    h = fc1(inputs)
    out = fc2(h)
    temp.append(h.detach())
    if i != 0:
        out = out + temp[0].mean()
    loss = nn.functional.mse_loss(out, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
