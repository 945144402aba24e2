# title: autograd.grad for two disjoint inputs of two disjoint losses
# kind: ok
# source: https://github.com/pytorch/pytorch/pull/3151
# truth: measured.json
# %%
import torch
a = torch.randn(3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
la, lb = a.exp().sum(), b.exp().sum()
# %%
ga, = torch.autograd.grad(la, a)
# %%
gb, = torch.autograd.grad(lb, b)
