# verified: detach recompute_in_loop
# says: `adv` was built in In[2], line 2. | reaches the same node through `adv`.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
oa, oc = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
obs, ret = torch.randn(6, 4), torch.randn(6)
# %%
v = critic(obs).squeeze(-1)
adv = ret - v
dist = torch.distributions.Categorical(logits=actor(obs))
logp = dist.log_prob(dist.sample())
# %%
actor_loss = -(logp * adv).mean()
oa.zero_grad(); actor_loss.backward(); oa.step()
# %%
critic_loss = adv.pow(2).mean()
oc.zero_grad(); critic_loss.backward(); oc.step()
