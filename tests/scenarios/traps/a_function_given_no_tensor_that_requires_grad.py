# verified:
# says: `Reversible.apply(x, self.blocks)` (In[1], line 18) runs code that is not recorded | Let `x` require grad where it is made
# never says: ran under | Nothing that | with torch.no_grad
# %%
import torch, torch.nn as nn
class Reversible(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, blocks):
        with torch.no_grad():
            for block in blocks:
                x = x + block(x)
        ctx.blocks, ctx.y = blocks, x.detach()
        return x
    @staticmethod
    def backward(ctx, g):
        return g, None
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
    def forward(self, x):
        return Reversible.apply(x, self.blocks)
# %%
stack = Stack()
batch = torch.randn(4, 3)
# %%
loss = stack(batch).pow(2).mean()
loss.backward()
