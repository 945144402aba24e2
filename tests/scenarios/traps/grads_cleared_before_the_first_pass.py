# verified:
# says: there is nothing to clear yet. Clear `slope.grad` and `offset.grad` only if not None.
# %%
import torch
torch.manual_seed(0)
slope = torch.ones(1, requires_grad=True)
offset = torch.zeros(1, requires_grad=True)
# %%
for _ in range(3):
    error = ((slope * torch.arange(4.0) + offset - 2) ** 2).mean()
    slope.grad.zero_()
    offset.grad.zero_()
    error.backward()
    with torch.no_grad():
        slope -= 0.01 * slope.grad
        offset -= 0.01 * offset.grad
