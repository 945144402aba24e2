# verified: under_no_grad
# says: `params[0]` is a leaf that requires grad
# %%
import torch
params = [torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)]
loss = sum((p * 2).sum() for p in params)
loss.backward()
params[0] -= 0.1 * params[0].grad
