# title: x.mul_() in a power iteration that saves x
# kind: inplace
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
A = torch.randn(3, 3, requires_grad=True)
v = torch.ones(3)
# %%
for k in range(3):
    u = A @ v
    v = u / u.norm()
    u.mul_(0.5)
# %%
v.sum().backward()
