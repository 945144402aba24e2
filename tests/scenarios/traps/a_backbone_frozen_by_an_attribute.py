# Three parts are to be frozen by attributes that torch does not read. A fourth one has a setting of its own.
# verified:
# says: `net.stem` is not frozen | sets a plain attribute of a module | `net.stem.weight` and `net.stem.bias` still require grad | Write `self.stem.requires_grad_(False)` | `net.blocks[0]` and `net.blocks[1]` are not frozen | Write `block.requires_grad_(False)` | `net.scale` is not frozen, and trained | Write `net.scale.requires_grad = False`
# never says: head | frozen_part | gate
# %%
import torch
from torch import nn

torch.manual_seed(0)


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.requires_grad = False

    def forward(self, x):
        return x * self.weight if self.requires_grad else x * self.weight.tanh()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(3, 4)
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.gate = Gate()
        self.frozen_part = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)
        self.scale = nn.Parameter(torch.ones(1))
        self.stem.requires_grad = False
        for block in self.blocks:
            block.requires_grad = False
        self.frozen_part.requires_grad = False
        for parameter in self.frozen_part.parameters():
            parameter.requires_grad = False

    def forward(self, x):
        x = self.gate(self.stem(x))
        for block in self.blocks:
            x = block(x).tanh()
        return self.scale * self.head(self.frozen_part(x))


# %%
net = Net()
net.scale.require_grad = False
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 3), torch.randn(8, 1)
for _ in range(3):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
