# verified: recompute_in_loop
# says: `opt.step(closure)` (In[3], line 1) modified `w`
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
opt = torch.optim.LBFGS([w], max_iter=3)
reg = (w ** 2).sum()
# %%
def closure():
    opt.zero_grad()
    loss = (w - 1).pow(2).sum()
    loss.backward()
    return loss
# %%
opt.step(closure)
reg.backward()
