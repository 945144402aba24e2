# verified: out_of_place clone_before_inplace
# says: Write `c = c + 1` instead of `c += 1` (In[1], line 7). Then `b` keeps its values.
# %%
import torch
a = torch.ones(3, requires_grad=True)
b = a.exp()
for i in range(2):
    c = b[:2]
    d = b ** 2
    c += 1
    d.sum().backward(retain_graph=True)
