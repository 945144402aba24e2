# verified: out_of_place clone_before_inplace
# says: `y += 1` (In[2], line 3) modified `y` after ExpBackward0 had saved it. Its old values
# %%
import torch
x = torch.linspace(0, 1, 5, requires_grad=True)
y = x * 2
# %%
y.exp_()
w = y.sum()
y += 1
w.backward()
