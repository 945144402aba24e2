from torch import nn


class Tower(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.GELU())
        self.project = nn.Linear(width, 4)

    def forward(self, x):
        return self.project(self.body(x))

    def widen(self, size):
        """Another size of the output, for a new task."""
        self.project = nn.Linear(self.project.in_features, size)
