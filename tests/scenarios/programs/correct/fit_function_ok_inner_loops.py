# title: Nested loops in a training function: epochs, batches, time steps
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
cell, head = nn.GRUCell(2, 3), nn.Linear(3, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()], 1e-2)
# %%
def fit(epochs):
    for epoch in range(epochs):
        for batch in torch.randn(3, 4, 2, 2):
            hidden, outs = torch.zeros(2, 3), []
            for x in batch:
                hidden = cell(x, hidden)
                outs.append(head(hidden))
            loss = torch.stack(outs).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss
# %%
final = fit(2)
