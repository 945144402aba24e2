# %%
N = 12
import torch
from torch import nn

G, D = nn.Linear(2, 3), nn.Linear(3, 1)
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
d_losses, g_losses = [], []
# %%
for it in range(N):
    fake = G(torch.randn(4, 2))
    d_loss = D(torch.randn(4, 3)).sigmoid().log().mean() + (1 - D(fake.detach()).sigmoid()).log().mean()
    opt_d.zero_grad()
    (-d_loss).backward()
    opt_d.step()
    g_loss = -D(fake).sigmoid().log().mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    d_losses.append(d_loss.item())
    g_losses.append(g_loss.detach())
