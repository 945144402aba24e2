from torch import nn

from util.timing import timed


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(3, 5)
        self.right = nn.Linear(3, 5)

    @timed
    def embed(self, a, b):
        return self.left(a), self.right(b)

    def forward(self, a, b):
        left, right = self.embed(a, b)
        return (left * right).sum(1)
