# verified: drop_gradient
# says: `loss` is one number, and its gradient begins with 1
# %%
import torch
x = torch.ones(4, requires_grad=True)
weights = torch.ones(4)
loss = x.exp().mean()
# %%
loss.backward(weights)
