# verified:
# says: for `weight`: its shape is [2]. That of `weight` is [3]
# never says: for `factor`
# %%
import torch
class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, factor, data, weight):
        ctx.factor = factor
        ctx.save_for_backward(data)
        return factor * data * weight
    @staticmethod
    def backward(ctx, g):
        data, = ctx.saved_tensors
        return None, None, (g * ctx.factor * data)[:2]
w = torch.ones(3, requires_grad=True)
# %%
loss = Weighted.apply(2.0, torch.ones(3), w).sum()
loss.backward()
