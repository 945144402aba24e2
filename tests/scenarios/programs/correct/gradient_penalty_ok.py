# title: WGAN-GP gradient penalty with create_graph, one backward
# kind: ok
# source: class of https://github.com/KupynOrest/DeblurGAN/pull/91
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
D = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(D.parameters())
# %%
for it in range(2):
    mix = torch.randn(4, 3, requires_grad=True)
    score = D(mix)
    g, = torch.autograd.grad(score.sum(), mix, create_graph=True)
    loss = score.mean() + (g.norm(dim=1) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
