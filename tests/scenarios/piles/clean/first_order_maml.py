# %%
N = 5
import torch

w = torch.randn(3, 3, requires_grad=True)
opt = torch.optim.SGD([w], 0.01)


def adapt(steps):
    fast = w
    for k in range(steps):
        (g,) = torch.autograd.grad((torch.randn(2, 3) @ fast).pow(2).mean(), fast)
        fast = fast - 0.1 * g
    return fast


# %%
for it in range(N):
    outer = []
    for task in range(4):
        fast = adapt(5)
        outer.append((torch.randn(2, 3) @ fast).pow(2).mean())
    opt.zero_grad()
    torch.stack(outer).sum().backward()
    opt.step()
# %%
fast = adapt(10)
error = (torch.randn(2, 3) @ fast).pow(2).mean().item()
