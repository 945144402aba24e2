# verified: retain_graph_earlier_call
# %%
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid())
# %%
z = net(torch.randn(4, 3))
queue = list(z.unbind(0))
while queue:
    item = queue.pop(0)
    item.sum().backward()
