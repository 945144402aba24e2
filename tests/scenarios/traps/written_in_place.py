# verified: retain_graph_earlier_call recompute_in_loop
# %%
import torch
x = torch.randn(3, requires_grad=True)
h = x.clone()
h.mul_(2)
l = (h * h).sum()
# %%
l.backward()
# %%
h.zero_()
h.sum().backward()
