# verified:
# says: is not explained yet
# never says: `loss` | graph | no_grad
# %%
import torch
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        d, = torch.autograd.grad((x.detach() ** 2).sum(), x)
        return g * d
w = torch.randn(3, requires_grad=True)
loss = Twice.apply(w * 1).sum()
# %%
loss.backward()
