# title: The diagonal of a Hessian is estimated in every step
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
parameters = list(net.parameters())
curvature = [torch.zeros_like(p) for p in parameters]
# %%
for step in range(4):
    loss = net(torch.randn(8, 3)).square().mean()
    slopes = torch.autograd.grad(loss, parameters, create_graph=True)
    signs = [torch.randint_like(p, 2) * 2 - 1 for p in parameters]
    products = torch.autograd.grad(slopes, parameters, grad_outputs=signs)
    with torch.no_grad():
        for p, slope, c, product, sign in zip(parameters, slopes, curvature, products, signs):
            c.mul_(0.9).add_(0.1 * (product * sign).abs())
            p.sub_(0.1 * slope / (c + 1e-2))
