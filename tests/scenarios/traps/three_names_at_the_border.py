# verified: retain_graph_earlier_call recompute_in_loop
# says: `reg` was built in In[2], line 1. | reaches the same node through `reg`.
# %%
import torch
w1 = torch.randn(4, 4, requires_grad=True); w2 = torch.randn(4, 1, requires_grad=True); x = torch.randn(8, 4)
# %%
h = (x @ w1).relu(); y1, y2 = h @ w2, (h * h).mean(); reg = w1.norm()
# %%
(y1.mean() + reg).backward()
# %%
(y2 + reg).backward()
