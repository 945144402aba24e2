# verified: recompute_in_loop
# %%
import torch
torch.manual_seed(0)
theta = torch.tensor([2.0], requires_grad=True)
scale = theta.exp()
# %%
n = 0
while scale > 0.5:
    energy = (scale * theta).sum()
    energy.backward()
    with torch.no_grad():
        theta -= 0.1 * theta.grad
        theta.grad.zero_()
    n += 1
