# verified: out_of_place clone_before_inplace
# %%
import torch
b = torch.ones(3)
w = torch.ones(3, requires_grad=True)
y = (w * b).sum()
b.resize_(5)
# %%
y.backward()
