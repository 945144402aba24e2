# verified:
# says: What `forward` was given there, `b`, was no tensor | Return None at position 2
# %%
import torch
from torch.autograd import Function
torch.manual_seed(0)

class Mul(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a)
        ctx.b = b
        return a * b
    @staticmethod
    def backward(ctx, g):
        a, = ctx.saved_tensors
        return g * ctx.b, (g * a).sum()
w = torch.randn(3, requires_grad=True)
# %%
loss = Mul.apply(w, 3.0).sum()
loss.backward()
