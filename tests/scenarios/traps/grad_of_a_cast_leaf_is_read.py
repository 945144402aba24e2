# verified: retain_grad retain_grad
# says: `w` was computed in In[1], line 2: it is no leaf.
# %%
import torch
w = torch.randn(3, requires_grad=True).double()
loss = (w * 2).sum()
loss.backward()
# %%
print(w.grad, loss.grad)
