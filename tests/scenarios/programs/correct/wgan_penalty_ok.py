# title: A critic with a gradient penalty, several critic steps for one of the generator
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

G = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
opt_g, opt_d = (torch.optim.Adam(m.parameters(), 1e-3, betas=(0.5, 0.9)) for m in (G, D))

def penalty(real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(D(between).sum(), between, create_graph=True)
    return (slope.norm(2, dim=1) - 1).square().mean()
# %%
for step in range(2):
    for _ in range(2):
        real, fake = torch.randn(6, 2) + 2, G(torch.randn(6, 2)).detach()
        loss_d = D(fake).mean() - D(real).mean() + 10 * penalty(real, fake)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
    loss_g = -D(G(torch.randn(6, 2))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
