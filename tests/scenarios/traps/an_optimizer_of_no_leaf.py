# verified: leaf
# says: `w` was computed in In[1], line 2.
# %%
import torch
w = torch.randn(3, 3, requires_grad=True) * 0.01
opt = torch.optim.Adam([w], lr=0.1)
for i in range(3):
    loss = w.square().sum()
    opt.zero_grad(); loss.backward(); opt.step()
