# verified: clone_before_inplace
# %%
import torch
w = torch.randn(3, requires_grad=True)
xs = [(w * i).sigmoid() for i in range(3)]
l = torch.stack(xs).pow(2).sum()
xs[1].add_(1)
# %%
l.backward()
