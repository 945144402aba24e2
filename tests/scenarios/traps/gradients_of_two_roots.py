# verified:
# says: the shape [2], and the root has []
# never says: `a` | `b` | Leave | ones_like(a) | [None
# %%
import torch
x = torch.ones(3, requires_grad=True)
a, b = x.sum(), x.prod()
# %%
torch.autograd.backward([a, b], [None, torch.ones(2)])
