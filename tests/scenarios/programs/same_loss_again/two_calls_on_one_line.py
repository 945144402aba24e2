# title: Two calls of backward on one line
# kind: second_backward
# truth: measured.json
# %%
import torch; torch.manual_seed(0); w = torch.randn(3, requires_grad=True)
# %%
y = w.sin(); y2 = y * y
l1 = y2.sum(); l2 = y2.mean()
l1.backward(); l2.backward()
