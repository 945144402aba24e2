import argparse

import torch

from .filter import Smoother
from .memory import Memory

parser = argparse.ArgumentParser()
parser.add_argument("--windows", type=int, default=3)


def main():
    windows = parser.parse_args().windows
    torch.manual_seed(0)
    smoother, memory = Smoother(), Memory()
    before = smoother.gain.weight.clone()
    optimizer = torch.optim.SGD(smoother.parameters(), lr=0.1)
    for _ in range(windows):
        level = smoother(torch.randn(5, 3), memory)
        loss = (level - 0.5).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("moved", not torch.equal(before, smoother.gain.weight))


main()
