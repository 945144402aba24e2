# verified: out_of_place clone_before_inplace
# %%
import torch
w = torch.rand(3, requires_grad=True)
h = w * 2
q = w.exp()
h[0] = h[1] * q[0]
q *= 2
# %%
h.sum().backward()
