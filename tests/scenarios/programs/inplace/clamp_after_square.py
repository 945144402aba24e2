# title: clamp_ on a tensor whose square was taken
# kind: inplace
# truth: measured.json
# %%
import torch
a = torch.randn(4, requires_grad=True)
# %%
d = a - 1
sq = d.pow(2)
d.clamp_(min=0)
# %%
(sq.sum() + d.sum()).backward()
