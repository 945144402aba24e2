# title: e[mask] = 0 after exp saved its result
# kind: inplace
# truth: measured.json
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
