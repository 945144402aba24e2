# verified:
# says: `Gate` has no `backward`. | Write a static method `backward(ctx, ...)`
# never says: indented too far | Call it
# %%
import torch
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        def backward(scale):
            return scale * 2
        return x * backward(1.0)
# %%
w = torch.ones(3, requires_grad=True)
Gate.apply(w).sum().backward()
