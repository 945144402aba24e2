# title: A2C: advantage not detached, two backward calls
# kind: second_backward
# source: https://github.com/astariul/encode-attend-navigate-pytorch/pull/3
# source: https://github.com/nikhilbarhate99/PPO-PyTorch/issues/29
# source: https://github.com/PacktPublishing/Deep-Reinforcement-Learning-Hands-On-Second-Edition/issues/60
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
actor, critic = nn.Linear(3, 2), nn.Linear(3, 1)
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()])
s, a, ret = torch.randn(8, 3), torch.randint(0, 2, (8, 1)), torch.randn(8, 1)
# %%
value = critic(s)
adv = ret - value
policy_loss = -(actor(s).log_softmax(-1).gather(1, a) * adv).mean()
value_loss = adv.pow(2).mean()
# %%
opt.zero_grad()
policy_loss.backward()
# %%
value_loss.backward()
opt.step()
