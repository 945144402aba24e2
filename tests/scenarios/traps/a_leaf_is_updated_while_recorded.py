# verified: under_no_grad
# says: `w` is a leaf that requires grad
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, 1, requires_grad=True)
x = torch.randn(10, 3)
# %%
for i in range(3):
    loss = (x @ w).square().mean()
    loss.backward()
    w -= 0.1 * w.grad
