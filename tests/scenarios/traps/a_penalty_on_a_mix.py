# verified: recompute_in_loop
# says: `fake` was built once, in In[2], line 1.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
gen, critic = nn.Linear(2, 3), nn.Linear(3, 1)
opt = torch.optim.Adam(critic.parameters())
real = torch.randn(6, 3)
# %%
fake = gen(torch.randn(6, 2))
for _ in range(2):
    eps = torch.rand(6, 1)
    mix = (eps * real + (1 - eps) * fake)
    score = critic(mix).pow(2)
    (g,) = torch.autograd.grad(score.sum(), mix, create_graph=True)
    gp = (g.norm(dim=1) - 1).pow(2).mean()
    opt.zero_grad()
    gp.backward()
    opt.step()
