# verified: out_of_place clone_before_inplace
# %%
import torch
w = torch.randn(3, requires_grad=True)
xs = {"a": (w * 2).sigmoid(), "b": w.exp()}
l = (xs["a"] * xs["b"]).sum()
xs["b"].mul_(3)
# %%
l.backward()
