# verified: clone_before_inplace
# %%
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
d = y.detach()
n = y.data
n.zero_()
l = y.sum()
# %%
l.backward(retain_graph=True)
d.zero_()
# %%
l.backward()
