from torch import nn

from .scale import Scale


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.scale = nn.Linear(3, 3), Scale()

    def forward(self, x):
        return self.scale(self.lin(x).exp())
