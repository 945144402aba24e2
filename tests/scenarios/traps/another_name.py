# verified: retain_graph_earlier_call recompute_in_loop detach
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 3)
head = nn.Linear(3, 1)
x = torch.randn(4, 3)
# %%
h = torch.tanh(net(x))
feat = h
l1 = head(feat).pow(2).mean()
l1.backward()
l2 = head(feat).abs().mean()
print(h.mean().item())
l2.backward()
print(h.shape)
