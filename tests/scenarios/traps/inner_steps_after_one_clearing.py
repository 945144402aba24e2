# verified:
# says: `opt.zero_grad()` (In[2], line 3) stands before the loop | in 6 of 8 cases | move `opt.zero_grad()` (In[2], line 3)
# never says: in the first step
# Refinement steps of a code, each of which is the mean of two views on purpose.
# %%
import torch

torch.manual_seed(0)
decoder = torch.nn.Linear(4, 6)
volume = torch.randn(3, 2, 6)
# %%
def refine(code, opt, views):
    losses = []
    opt.zero_grad()
    for inner in range(3):
        for view in views:
            error = (decoder(code) - view).pow(2).mean() / len(views)
            error.backward()
        opt.step()
        losses.append(error.item())
    return losses
# %%
code = torch.nn.Parameter(torch.zeros(4))
opt = torch.optim.SGD([code], lr=0.1)
for views in volume:
    print(refine(code, opt, views))
