# verified:
# says: with `inplace=True` | have a full backward hook
# %%
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.act, self.fc = nn.Linear(4, 4), nn.LeakyReLU(0.1, inplace=True), nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(self.act(self.conv(x)))
net = Net()
for layer in (net.conv, net.fc):
    layer.register_full_backward_hook(lambda module, given, out: None)
# %%
for _ in range(2):
    net(torch.ones(2, 4)).sum().backward()
