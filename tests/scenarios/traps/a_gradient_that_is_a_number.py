# verified:
# says: returns `float` where PyTorch takes a tensor
# %%
import torch
from torch.autograd import Function
torch.manual_seed(0)

class Sq(Function):
    @staticmethod
    def forward(ctx, x):
        return (x ** 2).sum()
    @staticmethod
    def backward(ctx, g):
        return 2.0
w = torch.randn(3, requires_grad=True)
# %%
Sq.apply(w).backward()
