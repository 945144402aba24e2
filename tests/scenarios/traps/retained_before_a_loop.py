# verified:
# says: Ask for it before backward: `h.retain_grad()`
# %%
import torch
w = torch.ones(3, requires_grad=True)
# %%
h = (w * 2).exp()
for k in range(2):
    (h * k).sum().backward()
    print(h.grad.norm())
