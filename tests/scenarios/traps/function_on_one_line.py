# verified: retain_graph_earlier_call
# %%
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
out = net(torch.randn(2, 3))
def back(i): out[:, i].sum().backward()
# %%
list(map(back, range(3)))
