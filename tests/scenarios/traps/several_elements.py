# verified: zero_grad_or_step_order
# %%
import torch
ps = [torch.randn(3, requires_grad=True) for _ in range(3)]
ls = [(p * p).sum() for p in ps]
with torch.no_grad():
    torch._foreach_mul_(ps[:2], 0.5)
# %%
sum(ls).backward()
