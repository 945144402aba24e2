# title: custom Function keeps its input on ctx, not in save_for_backward: second backward runs
# kind: nasty
# source: https://github.com/pytorch/pytorch/pull/153005
# truth: measured.json
# %%
import torch
class Sq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x
    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.x * g
# %%
x = torch.randn(3, requires_grad=True)
y = Sq.apply(x).sum()
# %%
y.backward()
# %%
y.backward()
