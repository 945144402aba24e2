# title: An episode's log-probs in a list, one backward, list cleared
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
policy = nn.Linear(2, 3)
opt = torch.optim.Adam(policy.parameters(), 1e-2)
saved = []
# %%
for episode in range(4):
    for t in range(5):
        pi = torch.distributions.Categorical(logits=policy(torch.randn(2)))
        act = pi.sample()
        saved.append(pi.log_prob(act))
    opt.zero_grad()
    (-torch.stack(saved).sum()).backward()
    opt.step()
    saved.clear()
