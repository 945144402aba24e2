# verified: out_of_place clone_before_inplace
# %%
import torch
x = torch.randn(3, requires_grad=True)
a = x.exp(); b = x.sigmoid()
a.add_(1)
b.mul_(2)
l = a.sum() + b.sum()
# %%
l.backward()
