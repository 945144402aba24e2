from functools import lru_cache

import torch

width = torch.nn.Parameter(torch.ones(5))


@lru_cache(maxsize=None)
def bumps(n):
    grid = torch.linspace(-1, 1, n)
    return torch.exp(-(grid[:, None] / width) ** 2)
