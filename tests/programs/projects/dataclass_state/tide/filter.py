import torch
from torch import nn

from .memory import Memory


class Smoother(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Linear(3, 3)

    def forward(self, x, memory: Memory):
        memory.windows += 1
        if memory.level is None:
            memory.level = torch.zeros(3)
        memory.level = torch.tanh(self.gain(x.mean(0)) + memory.level)
        return memory.level
