# verified: retain_graph_earlier_call
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 3)
# %%
out = net(torch.randn(2, 3))
[out[:, i].sum().backward() for i in range(3)]
