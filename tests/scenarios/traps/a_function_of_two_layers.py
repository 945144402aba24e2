# verified:
# says: for each of the 2 inputs
# never says: Return None | None, 
# %%
import torch
class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x)
        return x * w
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]
w = torch.ones(3, requires_grad=True)
v = torch.ones(3, requires_grad=True)
# %%
loss = Times.apply(Times.apply(torch.ones(3), w), v).sum()
loss.backward()
