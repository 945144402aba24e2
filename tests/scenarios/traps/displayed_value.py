# verified: retain_graph_earlier_call
# run_order: 1 2 3 3
# %%
import torch
w = torch.ones(3, requires_grad=True)
# %%
(w.exp() * w).sum()
# %%
Out[2].backward()
