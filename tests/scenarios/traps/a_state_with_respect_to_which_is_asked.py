# verified: detach
# says: `w = w.detach().requires_grad_()`
# %%
import torch
torch.manual_seed(0)
x, y = torch.randn(8, 3), torch.randn(8)
scale = torch.zeros((), requires_grad=True)
w = torch.zeros(3, requires_grad=True)
outer = torch.optim.SGD([scale], 0.1)
# %%
for step in range(3):
    for _ in range(2):
        inner = (x @ w - y).pow(2).mean() + scale.exp() * w.pow(2).sum()
        (g,) = torch.autograd.grad(inner, w, create_graph=True)
        w = w - 0.1 * g
    loss = (x @ w - y).pow(2).mean()
    outer.zero_grad()
    loss.backward()
    outer.step()
