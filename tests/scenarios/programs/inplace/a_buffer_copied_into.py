# title: A buffer is copied into while a product still needs its old values
# kind: inplace
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
outs = []
buf = torch.zeros(3)
for i in range(3):
    buf.copy_(w * i)
    outs.append((buf * w).sum())
# %%
sum(outs).backward()
