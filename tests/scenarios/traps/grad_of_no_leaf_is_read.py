# verified: retain_grad
# says: `w2` was computed in In[1], line 4: it is no leaf.
# %%
import torch
x = torch.randn(3)
w = torch.randn(3, requires_grad=True)
w2 = w * 2
loss = (w2 * x).sum()
loss.backward()
print(w2.grad, x.grad)
