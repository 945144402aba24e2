# title: States are collected in a buffer made before the loop
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
# %%
for epoch in range(3):
    states, h = torch.zeros(6, 2, 4), torch.zeros(2, 4)
    for t, x in enumerate(torch.randn(6, 2, 3)):
        h = cell(x, h)
        states[t] = h
    states[:, :, 0] *= 0.5
    loss = head(states).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
