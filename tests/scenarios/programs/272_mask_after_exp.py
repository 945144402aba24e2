# title: e[mask] = 0 after exp saved its result
# kind: inplace
# truth: 272_mask_after_exp.json
# %%
import torch
z = torch.randn(5, requires_grad=True)
# %%
e = z.exp()
mask = z < 0
e[mask] = 0
p = e / e.sum()
# %%
p.max().backward()
