# verified:
# %%
import torch
x = torch.rand(4, 4, requires_grad=True)
y = x * 1
z = x[0] * 2
# %%
y[1] *= y[2]
z.add_(1)
# %%
y.sum().backward()
