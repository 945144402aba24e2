# verified: retain_graph_earlier_call recompute_in_loop detach
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
G, D = nn.Linear(2, 3), nn.Linear(3, 1)
z = torch.randn(4, 2)
fake = G(z).tanh()
fm = fake.mean(0)
ld = D(fake).mean()
ld.backward()
# %%
lg = -D(fake).mean() + fm.pow(2).sum()
lg.backward()
