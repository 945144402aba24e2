# verified:
# says: (In[1], line 14) returns 1 gradient | Return None for `training`: `g * mask, None`
# never says: mark_dirty
# %%
import torch
torch.manual_seed(0)

class Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, training):
        noise = x.new_empty(x.shape).uniform_()
        mask = (noise > 0.3).to(x.dtype) if training else torch.ones_like(x)
        ctx.save_for_backward(mask)
        return x * mask
    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask
w = torch.randn(5, requires_grad=True)
# %%
Drop.apply(w * 2, True).sum().backward()
