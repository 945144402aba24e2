# verified: out_of_place clone_before_inplace
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
xs = [(w * i).sigmoid() for i in range(3)]
l = torch.stack(xs).pow(2).sum()
for i in range(1, 3):
    xs[i] += 1
# %%
l.backward()
