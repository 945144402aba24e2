# title: A custom Function with save_for_backward
# kind: ok
# truth: measured.json
# %%
import torch
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x * x * g
# %%
w = torch.linspace(-1, 1, 5, requires_grad=True)
for _ in range(3):
    Cube.apply(w).sum().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad = None
