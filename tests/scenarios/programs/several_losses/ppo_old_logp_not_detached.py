# title: PPO: old log-probs keep their graph over several epochs
# kind: second_backward
# source: https://github.com/ikostrikov/pytorch-a2c-ppo-acktr-gail/issues/284
# source: https://github.com/nikhilbarhate99/PPO-PyTorch/issues/18
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.Adam(actor.parameters())
s, a, adv = torch.randn(8, 3), torch.randint(0, 2, (8, 1)), torch.randn(8, 1)
old_logp = actor(s).log_softmax(-1).gather(1, a)
# %%
for epoch in range(3):
    logp = actor(s).log_softmax(-1).gather(1, a)
    ratio = (logp - old_logp).exp()
    loss = -(ratio * adv).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
