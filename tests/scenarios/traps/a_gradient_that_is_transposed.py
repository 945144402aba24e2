# verified:
# says: returns `x.t() @ g` for `weight` | It is transposed: [3, 4] for [4, 3]
# %%
import torch
from torch.autograd import Function
torch.manual_seed(0)

class Lin(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias
    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g @ weight, x.t() @ g, g.sum(0)
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 3))
        self.bias = torch.nn.Parameter(torch.zeros(4))
    def forward(self, x):
        return Lin.apply(x, self.weight, self.bias)
layer = Layer()
# %%
loss = layer(torch.randn(5, 3)).pow(2).mean()
loss.backward()
