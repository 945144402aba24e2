# title: Two penalties over one output: the first call retains
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 2)
out = net(torch.randn(5, 3)).tanh()
sparsity, energy = out.abs().mean(), out.pow(2).sum()
# %%
sparsity.backward(retain_graph=True)
ga = net.weight.grad.clone()
net.zero_grad()
energy.backward()
