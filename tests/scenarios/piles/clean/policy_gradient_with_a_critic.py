# %%
N = 33
import torch
from torch import nn

actor, critic = nn.Linear(3, 2), nn.Linear(3, 1)
opt_a, opt_c = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
log_probs = []
# %%
for step in range(N):
    state = torch.randn(3)
    dist = torch.distributions.Categorical(logits=actor(state))
    action = dist.sample()
    log_probs.append(dist.log_prob(action) * 0.5)
    value_loss = (critic(state) - 1.0).pow(2).sum()
    opt_c.zero_grad()
    value_loss.backward()
    opt_c.step()
    if len(log_probs) == 7:
        opt_a.zero_grad()
        (-torch.stack(log_probs).sum()).backward()
        opt_a.step()
        log_probs = []
