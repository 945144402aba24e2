# verified:
# says: `w` and `x` need one
# never says: Return None | grad_w, None
# %%
import torch
class Distance(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, x):
        ctx.save_for_backward(w, x)
        return (w - x).abs()
    @staticmethod
    def backward(ctx, g):
        w, x = ctx.saved_tensors
        return g * (w - x).sign()
w = torch.ones(3, requires_grad=True)
x = torch.linspace(0, 2, 3, requires_grad=True)
# %%
loss = Distance.apply(w, x).sum()
loss.backward()
