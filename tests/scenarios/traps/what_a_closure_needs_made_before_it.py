# verified: recompute_in_loop
# says: Compute `K = kernel(x)` (In[2], line 1) at the start of `closure`
# never says: retain_graph
# %%
import torch
torch.manual_seed(0)
scale = torch.zeros((), requires_grad=True)
x = torch.linspace(0, 1, 6)
opt = torch.optim.LBFGS([scale], lr=0.1, max_iter=3)
def kernel(x):
    return torch.exp(-0.5 * ((x[:, None] - x[None, :]) / scale.exp()) ** 2) + 0.1 * torch.eye(6)
# %%
K = kernel(x)
def closure():
    opt.zero_grad()
    loss = K.logdet() + (x @ torch.linalg.solve(K, x))
    loss.backward()
    return loss
for i in range(2):
    opt.step(closure)
