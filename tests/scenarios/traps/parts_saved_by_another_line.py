# verified: clone_before_inplace
# %%
import torch
w = torch.rand(3, requires_grad=True)
h = w * 2
s = (h * h).sum()
h[0] = h[1] * h[2]
# %%
(s + h.sum()).backward()
