"""Fit a line to noisy points."""

import torch
from torch import nn

from track.smoothing import Smoother
from track.steps import step


def train(passes):
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    smoother = Smoother()
    last = 0.0
    for _ in range(passes):
        x = torch.randn(16, 3)
        last = step(model, optimizer, smoother, x, x.sum(1, keepdim=True))
    return last


print(f"{train(5):.4f}")
