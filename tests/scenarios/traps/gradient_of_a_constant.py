# verified:
# says: `torch.autograd.grad(y, [x, c * 2])` asks for the gradient of `c * 2`, and no graph leads there.
# says: `y.backward(inputs=[c])` asks for the gradient of `c`, and no graph leads there.
# says: `(x > 0).float().sum().backward()` (In[4], line 1) leaves the graph: it compares.
# %%
import torch
x = torch.randn(3, requires_grad=True); c = torch.ones(3)
y = (x * c).sum()
# %%
torch.autograd.grad(y, [x, c * 2])
# %%
y.backward(inputs=[c])
# %%
(x > 0).float().sum().backward()
