import torch
from torch import nn
from torch.nn import functional as F


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(5, 4)

    def forward(self, x):
        with torch.no_grad():
            out = F.normalize(self.embed(x), dim=1)
        return out
