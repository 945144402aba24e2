# verified:
# says: `Scale.apply(x, layer)` (In[2], line 1) runs code that is not recorded | `x` does not require grad.
# never says: `detach` cuts it | layer(x) * 2
# %%
import torch, torch.nn as nn
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        return layer(x).detach() * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2, None
layer, x = nn.Linear(4, 4), torch.randn(3, 4)
# %%
out = Scale.apply(x, layer)
out.sum().backward()
