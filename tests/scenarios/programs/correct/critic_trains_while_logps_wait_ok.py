# title: Log-probs wait in a list while the critic is trained at every step
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
actor, critic = nn.Linear(2, 2), nn.Linear(2, 1)
oa, oc = torch.optim.SGD(actor.parameters(), 0.1), torch.optim.SGD(critic.parameters(), 0.1)
# %%
logps = []
for t in range(6):
    s = torch.randn(2)
    logps.append(actor(s).log_softmax(0)[0])
    td = (critic(s) - 1).pow(2).sum()
    oc.zero_grad()
    td.backward()
    oc.step()
# %%
oa.zero_grad()
(-sum(logps)).backward()
oa.step()
