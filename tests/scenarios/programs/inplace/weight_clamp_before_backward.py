# title: Weights clamped under no_grad between the loss and its backward
# kind: inplace
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
cost = critic(torch.randn(5, 3)).mean()
# %%
with torch.no_grad():
    for p in critic.parameters():
        p.clamp_(-0.01, 0.01)
# %%
cost.backward()
