# verified: out_of_place clone_before_inplace
# %%
import torch
x = torch.randn(3, requires_grad=True)
h = x * 2
p = h * h
k = x.tanh()
q = k.pow(2)
# %%
h.add_(1)
# %%
k.zero_()
# %%
(p + q).sum().backward()
