# title: Blog's alternative: retain_graph=True in every call (works here, keeps every iteration)
# kind: leak
# source: seed 003 (blog post by Prince, 2018-09-02)
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
inp, goal = torch.tensor([1., 2., 3.]), torch.tensor([1.])
fc1, fc2 = nn.Linear(3, 5), nn.Linear(5, 1)
opt = torch.optim.SGD([*fc1.parameters(), *fc2.parameters()], lr=.01)
# %%
temp = []
for i in range(10):
    h = fc1(inp)
    out = fc2(h)
    temp.append(h)
    if i != 0:
        out = out + temp[0].mean()
    loss = nn.functional.mse_loss(out, goal)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
