# verified: out_of_place clone_before_inplace
# %%
import torch
b = torch.ones(3)
w = torch.ones(3, requires_grad=True)
y = (w * b).sum(); z = (w * b.clone()).sum()
b.set_(torch.zeros(3))
# %%
y.backward()
