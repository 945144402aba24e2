# verified:
# says: has the shape [4, 3], and `y.sum()` has [] | Or begin at `y`
# %%
import torch
x = torch.ones(4, 3, requires_grad=True)
y = x * 2
# %%
y.sum().backward(gradient=y.detach())
