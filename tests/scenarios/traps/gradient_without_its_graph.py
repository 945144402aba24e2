# verified:
# says: The gradient from `dy, = torch.autograd.grad(y, x)` (In[2], line 2) has no graph.
# says: The gradient from `d2y, = torch.autograd.grad(dy, x)` (In[3], line 3) has no graph.
# %%
import torch
x = torch.tensor(1.5, requires_grad=True)
# %%
y = x ** 3
dy, = torch.autograd.grad(y, x)
d2y, = torch.autograd.grad(dy, x)
# %%
y = x ** 3
dy, = torch.autograd.grad(y, x, create_graph=True)
d2y, = torch.autograd.grad(dy, x)
d3y, = torch.autograd.grad(d2y, x)
