# title: Training, then sampling under inference_mode, then training again
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
cell, opt = nn.GRUCell(2, 3), None
opt = torch.optim.SGD(cell.parameters(), 0.1)
def fit(n):
    for _ in range(n):
        h = torch.zeros(1, 3)
        for t in range(4):
            h = cell(torch.randn(1, 2), h)
        opt.zero_grad(); h.sum().backward(); opt.step()
# %%
fit(2)
# %%
with torch.inference_mode():
    h = torch.zeros(1, 3)
    for _ in range(5):
        h = cell(torch.randn(1, 2), h)
# %%
fit(2)
