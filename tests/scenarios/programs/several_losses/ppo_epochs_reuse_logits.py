# title: Several epochs over a rollout whose distribution was made once
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
actor = nn.Linear(3, 2)
obs, act = torch.randn(6, 3), torch.randint(2, (6,))
rollout = {"logp": actor(obs).log_softmax(1).gather(1, act[:, None])}
# %%
def update():
    ratio = (rollout["logp"] - rollout["logp"].detach()).exp()
    (-ratio.mean()).backward()
# %%
for epoch in range(3):
    update()
