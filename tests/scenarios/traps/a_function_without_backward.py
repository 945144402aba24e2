# verified:
# says: `Sq` (In[1], line 5) says how its values are computed
# %%
import torch
from torch.autograd import Function
torch.manual_seed(0)

class Sq(Function):
    @staticmethod
    def forward(ctx, x):
        return (x ** 2).sum()
w = torch.randn(3, requires_grad=True)
# %%
Sq.apply(w).backward()
