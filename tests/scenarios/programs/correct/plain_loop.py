# title: Blog's working loop
# kind: ok
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
for i in range(10):
    loss = nn.functional.mse_loss(fc2(fc1(inp)), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
