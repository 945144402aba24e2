# title: Policy gradient: stored log-probs used for a second update
# kind: second_backward
# source: https://github.com/pytorch/examples/issues/151
# source: https://github.com/ikostrikov/pytorch-a2c-ppo-acktr-gail/issues/42
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
policy = nn.Linear(3, 2)
opt = torch.optim.Adam(policy.parameters())
memory = []
# %%
for t in range(4):
    logits = policy(torch.randn(3))
    action = torch.multinomial(logits.softmax(-1), 1).item()
    memory.append((logits.log_softmax(-1)[action], float(t)))
# %%
def finish_episode():
    loss = -torch.stack([lp * r for lp, r in memory]).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
# %%
finish_episode()
# %%
finish_episode()
