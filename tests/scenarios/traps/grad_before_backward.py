# verified:
# says: No backward has run yet.
# %%
import torch
w = torch.randn(3, requires_grad=True)
# %%
w.grad.zero_()
(w * 2).sum().backward()
