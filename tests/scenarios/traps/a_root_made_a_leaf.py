# verified:
# says: is itself a leaf
# never says: allow_unused
# %%
import torch
x = torch.randn(3, requires_grad=True)
with torch.no_grad():
    score = (x * 2).sum()
# %%
loss = 1 - score
g, = torch.autograd.grad(loss.requires_grad_(True), [x])
