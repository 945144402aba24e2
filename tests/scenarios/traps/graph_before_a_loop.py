# verified:
# says: Take `h = (w * 2).exp()` out of
# %%
import torch
w = torch.ones(3, requires_grad=True)
with torch.no_grad():
    h = (w * 2).exp()
# %%
for k in range(2):
    loss = (h * k).sum()
    loss.backward()
