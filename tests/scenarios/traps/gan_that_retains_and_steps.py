# verified: recompute_in_loop
# %%
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
G = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
bce = F.binary_cross_entropy_with_logits
# %%
for it in range(2):
    fake = G(torch.randn(8, 2))
    on_real, on_fake = D(torch.randn(8, 2)), D(fake)
    d_loss = bce(on_real, torch.ones(8, 1)) + bce(on_fake, torch.zeros(8, 1))
    opt_d.zero_grad()
    d_loss.backward(retain_graph=True)
    opt_d.step()
    g_loss = bce(on_fake, torch.ones(8, 1))
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
