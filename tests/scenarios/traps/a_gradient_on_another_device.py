# verified:
# says: Compute it on cpu | its device is meta
# %%
import torch
class Moved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return 2 * g.to("meta")
w = torch.ones(3, requires_grad=True)
# %%
loss = Moved.apply(w).sum()
loss.backward()
