# title: Nested autograd.grad inside a custom backward (re-entrant engine)
# kind: nasty
# source: https://github.com/pytorch/pytorch/issues/51978
# source: https://github.com/RobinBruegger/RevTorch/issues/7
# truth: measured.json
# %%
import torch
class Rev(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).tanh()
    @staticmethod
    def backward(ctx, g):
        x, w = [t.detach().requires_grad_() for t in ctx.saved_tensors]
        with torch.enable_grad():
            y = (x * w).tanh()
        return torch.autograd.grad(y, (x, w), g)
# %%
x = torch.randn(3, requires_grad=True)
w = torch.randn(3, requires_grad=True)
Rev.apply(x, w).sum().backward()
# %%
Rev.apply(x, w).sum().backward()
