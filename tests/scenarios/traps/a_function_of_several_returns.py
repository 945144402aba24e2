# verified:
# says: `Scale.backward` returns 1 gradient | `alpha` and `x` | `x` needs one
# never says: Return None
# %%
import torch
from torch.autograd import Function
torch.manual_seed(0)

class Scale(Function):
    @staticmethod
    def forward(alpha, x):
        return x * alpha

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.alpha = inputs[0]

    @staticmethod
    def backward(ctx, grad_out):
        if ctx.alpha is None:
            return None
        return grad_out * ctx.alpha
def scaled(t):
    return Scale.apply(2.0, t)
net = torch.nn.Linear(3, 3)
# %%
for step in range(2):
    out = scaled(net(torch.randn(2, 3)))
    out.mean().backward()
