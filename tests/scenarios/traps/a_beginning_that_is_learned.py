# verified: detach
# %%
import torch
from torch import nn
torch.manual_seed(0)
cell = nn.GRUCell(4, 8)
h0 = nn.Parameter(torch.zeros(2, 8))
opt = torch.optim.SGD([*cell.parameters(), h0], lr=0.1)
# %%
h = h0
for t in range(3):
    h = cell(torch.randn(2, 4), h)
    loss = h.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
