# %%
N = 5
import torch
from torch import nn

cell = nn.RNNCell(3, 4)
opt = torch.optim.SGD(cell.parameters(), 0.1)
# %%
for step in range(N):
    h, hs = torch.zeros(1, 4), []
    for t in range(50):
        h = cell(torch.randn(1, 3), h)
        hs.append(h)
    loss = torch.stack(hs).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
