# verified:
# says: what is written here has a graph
# never says: with torch.no_grad
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 2)
step = torch.optim.SGD(net.parameters(), lr=0.1)
kept = {"tides": torch.zeros(4, 2, requires_grad=True)}
place = "tides"
for _ in range(2):
    heights = net(torch.randn(4, 3))
    kept[place][:] = heights
    step.zero_grad()
    kept[place].square().mean().backward()
    step.step()
