# verified: unfreeze
# %%
import torch
import torch.nn as nn
net = nn.Linear(3, 2)
for p in net.parameters():
    p.requires_grad = False
labels = torch.tensor([0, 1, 1])
x = torch.randn(3, 3)
# %%
loss = nn.functional.cross_entropy(net(x), labels)
loss.backward()
