# verified: out_of_place clone_before_inplace
# %%
import torch
x = torch.rand(4, 4, requires_grad=True)
y = x * 1
z = x[0] * 2
# %%
y[1] *= z
z += 1
# %%
y.sum().backward()
