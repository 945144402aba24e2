# title: create_graph=True implies retain_graph: the second call is fine
# kind: ok
# source: https://pytorch.org/docs/stable/generated/torch.autograd.grad.html
# truth: measured.json
# %%
import torch
x = torch.randn(3, requires_grad=True)
y = x.pow(3).sum()
# %%
g, = torch.autograd.grad(y, x, create_graph=True)
# %%
h, = torch.autograd.grad(g.sum(), x)
y.backward()
