# verified:
# says: Compute the loss without `detach`
# %%
import torch
w = torch.ones(3, requires_grad=True)
h = (w * 2).exp().detach()
# %%
for k in range(2):
    loss = (h * k).sum()
    loss.backward()
