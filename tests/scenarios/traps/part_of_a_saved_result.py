# verified: clone_before_inplace
# %%
import torch
x = torch.rand(4, requires_grad=True)
y = torch.sigmoid(x)
y[1] *= y[2]
# %%
y.sum().backward()
