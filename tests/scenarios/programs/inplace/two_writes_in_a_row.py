# title: Two in-place lines one after the other
# kind: inplace
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
x = torch.randn(4, requires_grad=True)
h = x.exp()
h += 1
h *= 2
loss = h.sum()
loss.backward()
