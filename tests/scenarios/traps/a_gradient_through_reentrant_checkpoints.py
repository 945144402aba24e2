# verified:
# says: `torch.autograd.grad` asks for some gradients only
# %%
import torch
from torch.utils.checkpoint import checkpoint
w = torch.ones(3, requires_grad=True)
def run(x):
    for _ in range(2):
        x = checkpoint(lambda t: (t * w).tanh(), x, use_reentrant=True)
    return x.sum()
# %%
x = torch.ones(3, requires_grad=True)
g, = torch.autograd.grad(run(x), x)
