# %%
N = 6
import torch

w = torch.randn(3, 3, requires_grad=True)
opt = torch.optim.SGD([w], 0.01)
# %%
for it in range(N):
    outer = []
    for task in range(4):
        fast = w
        for k in range(5):
            (g,) = torch.autograd.grad((torch.randn(2, 3) @ fast).pow(2).mean(), fast, create_graph=True)
            fast = fast - 0.1 * g
        outer.append((torch.randn(2, 3) @ fast).pow(2).mean())
    opt.zero_grad()
    sum(outer).backward()
    opt.step()
