# verified:
# says: its methods are not static | `Scale.apply(...)`
# %%
import torch
class Scale(torch.autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * 2
    def backward(self, g):
        return g * 2
w = torch.ones(3, requires_grad=True)
# %%
Scale()(w).sum().backward()
