# verified: clone_before_inplace
# %%
import torch
x = torch.rand(4, 4, requires_grad=True)
y = x * 2
y[:, 0] *= y[:, 1]
y[:, 2] /= y[:, 0]
# %%
y.sum().backward()
