# title: A loop on one line
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
h = w.cos()
for k in range(3): (h[k] ** 2).backward()
