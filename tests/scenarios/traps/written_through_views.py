# verified: retain_graph_earlier_call recompute_in_loop
# %%
import torch
x = torch.randn(3, 3, requires_grad=True)
h = x.clone()
h.diagonal().fill_(0)
h.t()[0] += 1
h.flatten()[:2].mul_(2)
h.select(0, 1).copy_(h.select(0, 0))
l = (h @ h).sum()
# %%
l.backward()
# %%
h.zero_()
h.sum().backward()
