# verified:
# says: `Gate` has no `backward`. | which nothing calls. | Call it `backward`.
# never says: .detach()
# %%
import torch
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backwards(ctx, g):
        return g * 2
# %%
w = torch.ones(3, requires_grad=True)
Gate.apply(w).sum().backward()
