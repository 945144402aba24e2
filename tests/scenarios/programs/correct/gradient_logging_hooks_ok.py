# title: Hooks log the norms of gradients
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

class Logger:
    def __init__(self):
        self.norms = {}

    def on(self, name):
        def hook(grad):
            self.norms.setdefault(name, []).append(grad.norm().item())
        return hook

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x):
        h = torch.sigmoid(self.one(x))
        if h.requires_grad:
            h.register_hook(logger.on("h"))
        return self.two(h)

logger, net = Logger(), Net()
for name, parameter in net.named_parameters():
    parameter.register_hook(logger.on(name))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
# %%
for x in torch.randn(4, 6, 3):
    optimizer.zero_grad()
    net(x).mean().backward()
    optimizer.step()
