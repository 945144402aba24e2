# verified: retain_graph_earlier_call recompute_in_loop
# says: `right` was built in In[2], line 3. | reaches the same node through `right`.
# %%
import torch
p = torch.randn(3, requires_grad=True)
# %%
mid = p.exp()
left = (mid * 2).sin()
right = mid.cos() + 1
del mid
# %%
left.sum().backward()
# %%
total = right.sum() * 3
total.backward()
