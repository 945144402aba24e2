# title: LBFGS with a proper closure
# kind: ok
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
A, b = torch.randn(6, 3), torch.randn(6)
x = torch.zeros(3, requires_grad=True)
opt = torch.optim.LBFGS([x], lr=0.5, max_iter=4)
# %%
def closure():
    opt.zero_grad()
    r = ((A @ x - b) ** 2).sum()
    r.backward()
    return r
# %%
for _ in range(2):
    opt.step(closure)
