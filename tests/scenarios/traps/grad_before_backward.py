# verified:
# says: No backward is known to have run.
# %%
import torch
w = torch.randn(3, requires_grad=True)
# %%
w.grad.zero_()
(w * 2).sum().backward()
