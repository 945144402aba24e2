# title: In-place probe: changing other breaks the backward
# kind: inplace
# source: seed 004 (https://discuss.pytorch.org/t/which-is-freed-which-is-not/8636)
# truth: measured.json
# %%
import torch
me = torch.rand(10, requires_grad=True).clone()
other = torch.rand(10)
# %%
out = me * other
other += 1
# %%
out.backward(torch.ones_like(out))
