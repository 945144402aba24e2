# verified: out_of_place clone_before_inplace
# says: `t.mul_(0.5)` (In[1], line 5) modified `h`, there `t`, after ExpBackward0 had saved it. Its old
# %%
import torch
w = torch.ones(3, requires_grad=True)
h = (w * 2).exp()
def scale(t):
    t.mul_(0.5)
    return t
out = scale(h).sum()
# %%
out.backward()
