# title: Thread's snippet with integer leaves
# kind: dtype_error
# source: seed 002 (discuss.pytorch.org: Backpropagation - Graph is reused while it shouldn't)
# truth: measured.json
# %%
import torch
a = torch.tensor(1, requires_grad=True)
b = a * torch.tensor(2)
