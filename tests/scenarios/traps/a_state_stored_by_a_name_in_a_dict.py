# verified: detach
# never says: (self.start * 1).detach()
# %%
import torch, torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.start = nn.RNNCell(3, 4), nn.Parameter(torch.zeros(2, 4))
        self.reset()
    def reset(self):
        self.h = self.start * 1
    def forward(self, x):
        return self.cell(x, self.h)
net = Net()
def keep(thing, **values):
    thing.__dict__.update(values)
# %%
for x in torch.randn(4, 2, 3):
    out = net(x)
    out.pow(2).mean().backward()
    keep(net, h=out)
