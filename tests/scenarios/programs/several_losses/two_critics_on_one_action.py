# title: Two critics look at one action; each value gets a backward
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(1)
actor = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
critics = nn.ModuleList(nn.Linear(5, 1) for _ in range(2))
state = torch.randn(4, 3)
# %%
action = actor(state)
values = [critic(torch.cat([state, action], 1)).mean() for critic in critics]
# %%
for value in values:
    (-value).backward()
