# verified:
# says: (In[1], line 13) returns 1 gradient | `x` and `alpha` | Return None for `alpha`
# %%
import torch
from torch.autograd import Function
torch.manual_seed(0)

class Scale(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x * alpha

    @staticmethod
    def backward(ctx, grad_out):
        return grad_out * ctx.alpha
w = torch.randn(3, requires_grad=True)
# %%
loss = Scale.apply(w, 0.5).sum()
loss.backward()
