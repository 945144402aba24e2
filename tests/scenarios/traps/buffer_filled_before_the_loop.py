# verified: recompute_in_loop retain_graph_earlier_call
# %%
import torch
w = torch.rand(3, requires_grad=True)
v = torch.rand(3, requires_grad=True)
saved = []
for t in range(2):
    saved.append(w.exp())
# %%
for ep in range(3):
    (torch.stack(saved) * v.sigmoid()).sum().backward()
