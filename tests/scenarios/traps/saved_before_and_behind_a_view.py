# verified: out_of_place clone_before_inplace
# says: `c = c.clone()` before `c.mul_(2)` (In[1], line 6). Then `b` keeps its values.
# %%
import torch
a = torch.ones(3, requires_grad=True)
b = a.exp()
c = b.view(3)
d = b ** 2
c.mul_(2)
# %%
(d.sum() + b.sum()).backward()
