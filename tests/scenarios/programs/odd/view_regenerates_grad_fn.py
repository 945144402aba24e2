# title: In-place on a view rewrites the base's and other views' grad_fn
# kind: nasty
# source: https://pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
# truth: measured.json
# %%
import torch
a = torch.randn(2, 3, requires_grad=True)
base = a * 1
row = base[0]
other = base[1]
names0 = [t.grad_fn.name() for t in (base, row, other)]
# %%
row.mul_(3)
names1 = [t.grad_fn.name() for t in (base, row, other)]
# %%
base.sum().backward()
