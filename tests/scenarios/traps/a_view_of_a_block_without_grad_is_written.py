# verified:
# says: `part.mul_(3)` (In[2], line 1) modifies it where operations are recorded | make the view outside of `torch.no_grad()`
# %%
import torch
w = torch.ones(4, requires_grad=True)
y = w * 2
with torch.no_grad():
    part = y[:2]
# %%
part.mul_(3)
y.sum().backward()
