# verified: retain_graph_earlier_call detach
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 3)
head = nn.Linear(3, 1)
x = torch.randn(4, 3)
# %%
h = torch.tanh(net(x))
feats = []
feats.append(h)
l1 = head(feats[0]).pow(2).mean()
l1.backward()
l2 = head(feats[0]).abs().mean()
l2.backward()
print(h.shape)
