# verified:
# says: `Sq.backward` is marked | (In[1], line 9) | got a gradient from it | Drop `@once_differentiable` if
# never says: `Cube
# %%
import torch
from torch.autograd.function import once_differentiable
class Sq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2
x = torch.ones(3, requires_grad=True)
w = torch.ones(3, requires_grad=True)
Cube.apply(x).sum().backward()
g, = torch.autograd.grad((Sq.apply(x) * w).sum(), x, create_graph=True)
# %%
g.pow(2).sum().backward()
