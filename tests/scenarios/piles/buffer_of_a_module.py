# holder: net\.mean
# iterations: N
# %%
N = 15
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(5))
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * (x * self.w).mean(0)
        return x * self.w


net = Norm()
# %%
for it in range(N):
    net(torch.randn(4, 5)).pow(2).mean().backward()
