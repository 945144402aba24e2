# title: View, transpose, sum, cat, add: nothing to free
# kind: ok
# source: seed 000/002 (simple graphs have no buffers)
# truth: measured.json
# %%
import torch
x = torch.randn(3, 4, requires_grad=True)
y = torch.cat([x.t().reshape(2, 6), x.view(2, 6)]) + 1
z = (y - 3).sum()
# %%
z.backward()
# %%
z.backward()
z.backward()
