# %%
N = 24
import torch
from torch import nn

cell, head = nn.GRUCell(3, 5), nn.Linear(5, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])
h = torch.zeros(1, 5)
# %%
for step in range(N):
    loss = 0
    for t in range(4):
        h = cell(torch.randn(1, 3), h)
        loss = loss + head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    h = h.detach()
