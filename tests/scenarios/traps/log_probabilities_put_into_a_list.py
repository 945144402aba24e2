# verified: remove_no_grad
# says: ran under `torch.no_grad()` (In[1], line 7)
# never says: Nothing that | requires_grad=True
# %%
import torch, torch.nn as nn
policy = nn.Linear(4, 2)
def act(state):
    with torch.no_grad():
        d = torch.distributions.Categorical(logits=policy(state))
        action = d.sample()
        return action, d.log_prob(action)
# %%
kept = []
for t in range(3):
    action, logp = act(torch.randn(4))
    kept.append(logp)
loss = -torch.stack(kept).sum()
loss.backward()
