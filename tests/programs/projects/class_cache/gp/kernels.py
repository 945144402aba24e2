import torch
from torch import nn


class Rbf(nn.Module):
    cache: dict = {}

    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        key = len(x)
        if key not in self.cache:
            self.cache[key] = torch.exp(-(x[:, None] - x) ** 2 / self.log_scale.exp())
        return self.cache[key]
