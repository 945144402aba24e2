# title: A training function keeps the hidden state in a local variable
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
cell, head = nn.GRUCell(2, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.1)
# %%
def fit(batches):
    hidden = torch.zeros(1, 3)
    for batch in batches:
        hidden = cell(batch, hidden)
        loss = head(hidden).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
# %%
fit(torch.randn(4, 1, 2))
