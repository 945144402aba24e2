# title: The forward of a module runs under no_grad
# kind: element0
# truth: measured.json
# %%
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 1)
    @torch.no_grad()
    def forward(self, x):
        return self.l(x)
net = Net()
# %%
loss = net(torch.randn(4, 3)).pow(2).mean()
# %%
loss.backward()
