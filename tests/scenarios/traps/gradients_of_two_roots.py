# verified:
# says: the shape [2], and `b` has [3]
# never says: `a` has
# %%
import torch
x = torch.ones(3, requires_grad=True)
a, b = x * 3, x * 2
# %%
torch.autograd.backward([a, b], [torch.ones(3), torch.ones(2)])
