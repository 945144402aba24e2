# title: In-place dropout and relu where nobody needs the old values
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8, 4), nn.Dropout(0.5, inplace=True), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), 0.1)
# %%
for _ in range(3):
    a, b = net(torch.randn(2, 1, 4, 4)), net(torch.randn(2, 1, 4, 4))
    opt.zero_grad()
    (a - b).pow(2).mean().backward()
    opt.step()
