# verified:
# says: `Gate` has no `backward`.
# says: indented too far: it stands inside `forward`, behind its `return`, where it is never reached.
# says: Indent `backward` like `forward`: then it is a method of the class.
# never says: .detach()
# %%
import torch
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x > 0)
# %%
w = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
Gate.apply(w).sum().backward()
