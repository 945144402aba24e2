# verified: clone_before_inplace
# says: `c = c.clone()` before `c[0] = 5.` (In[1], line 6). Then `b` keeps its values.
# %%
import torch
a = torch.ones(3, requires_grad=True)
b = a * 2
c = b.view(3)
d = b ** 2
c[0] = 5.
# %%
d.sum().backward()
