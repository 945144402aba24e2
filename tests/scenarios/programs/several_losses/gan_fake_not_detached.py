# title: GAN: D loss on fake without detach, then G loss on the same fake
# kind: second_backward
# source: https://github.com/pytorch/examples/pull/69
# source: https://github.com/KupynOrest/DeblurGAN/pull/91
# source: https://deadends.dev/cuda/backward-through-graph-twice/cuda12-linux
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
G = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
D = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(.2), nn.Linear(8, 1))
opt_G = torch.optim.Adam(G.parameters(), lr=1e-3)
opt_D = torch.optim.Adam(D.parameters(), lr=1e-3)
bce = nn.functional.binary_cross_entropy_with_logits
ones, zeros = torch.ones(4, 1), torch.zeros(4, 1)
# %%
real = torch.randn(4, 3)
fake = G(torch.randn(4, 2))
d_loss = bce(D(real), ones) + bce(D(fake), zeros)
opt_D.zero_grad()
d_loss.backward()
opt_D.step()
# %%
g_loss = bce(D(fake), ones)
opt_G.zero_grad()
g_loss.backward()
opt_G.step()
