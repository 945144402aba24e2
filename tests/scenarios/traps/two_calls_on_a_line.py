# verified: retain_graph_earlier_call remove_duplicate_call
# says: Remove `a.backward()`
# %%
import torch
w = torch.ones(3, requires_grad=True)
# %%
a = (w * w).sum(); a.backward(); a.backward()
# %%
print(w.grad.sum())
