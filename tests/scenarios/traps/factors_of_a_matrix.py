# verified: retain_graph_earlier_call recompute_in_loop
# says: reaches the same node through `u`.
# %%
import torch
torch.manual_seed(0)
W = torch.randn(5, 5, requires_grad=True)
# %%
q, r = torch.linalg.qr(W)
u, s, vh = torch.linalg.svd(W)
# %%
(q.sum() + s.sum()).backward()
# %%
(u @ vh).trace().backward()
