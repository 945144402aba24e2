# title: Two tasks on one encoding in the same iteration, no step in between
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
encoder, left, right = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD([*encoder.parameters(), *left.parameters(), *right.parameters()], 0.1)
# %%
for x in torch.randn(2, 5, 4):
    code = encoder(x).sigmoid()
    loss_left = left(code).abs().mean()
    loss_right = right(code).pow(2).mean()
    opt.zero_grad()
    loss_left.backward()
    loss_right.backward()
    opt.step()
