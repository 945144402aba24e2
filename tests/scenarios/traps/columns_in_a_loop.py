# verified: clone_before_inplace
# %%
import torch
w = torch.rand(3, requires_grad=True)
h = torch.zeros(3, 4)
h[:, 0] = w
for t in range(1, 4):
    h[:, t] = torch.sin(h[:, t - 1] * w)
# %%
h.sum().backward()
