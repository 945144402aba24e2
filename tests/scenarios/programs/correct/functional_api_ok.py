# title: torch.func and autograd.functional
# kind: ok
# truth: measured.json
# %%
import torch
from torch.autograd.functional import jacobian
w = torch.arange(3.0)
f = lambda v: (v ** 2).cumsum(0)
# %%
J = jacobian(f, w)
g = torch.func.grad(lambda v: f(v).sum())(w)
H = torch.func.hessian(lambda v: f(v).prod())(w)
