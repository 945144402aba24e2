# verified:
# says: `y` has 5 values, of shape [5].
# %%
import torch
x = torch.linspace(-1, 1, 5, requires_grad=True)
y = x ** 2
(dy,) = torch.autograd.grad(y, x)
