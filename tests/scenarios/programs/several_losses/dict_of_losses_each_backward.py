# title: Each loss of a dict gets a backward, on one encoder
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

encoder = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid())
heads = nn.ModuleDict({"depth": nn.Linear(4, 1), "normal": nn.Linear(4, 3), "edge": nn.Linear(4, 1)})
optimizer = torch.optim.Adam([*encoder.parameters(), *heads.parameters()])
# %%
for x in torch.randn(2, 5, 3):
    shared = encoder(x)
    losses = {name: head(shared).square().mean() for name, head in heads.items()}
    optimizer.zero_grad()
    for name, loss in losses.items():
        loss.backward()
    optimizer.step()
