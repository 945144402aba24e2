# verified:
# %%
import torch
W = {"w": torch.randn(3, requires_grad=True), "b": torch.zeros(1, requires_grad=True)}
opt = torch.optim.SGD(W.values(), lr=0.1)
x, y = torch.randn(5, 3), torch.randn(5)
# %%
fast = dict(W)
for ep in range(2):
    for k in range(2):
        loss = ((x @ fast["w"] + fast["b"] - y) ** 2).mean()
        gs = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
        fast = {n: p - 0.1 * g for (n, p), g in zip(fast.items(), gs)}
    outer = ((x @ fast["w"] + fast["b"] - y) ** 2).mean()
    opt.zero_grad(); outer.backward(); opt.step()
