# %%
N = 5
import torch

w = torch.randn(3, requires_grad=True)
probe = torch.randn(3, requires_grad=True)
# %%
for it in range(N):
    total = 0
    for k in range(6):
        (probe * torch.randn(3)).exp().sum().backward()
        total = total + (w * probe.grad.clone()).exp().sum()
    total.backward()
    w.grad = None
