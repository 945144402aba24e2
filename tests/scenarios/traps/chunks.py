# verified: retain_graph_earlier_call single_backward_sum
# %%
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
# %%
chunks = net(torch.randn(6, 3)).split(2)
for c in chunks:
    c.pow(2).mean().backward()
