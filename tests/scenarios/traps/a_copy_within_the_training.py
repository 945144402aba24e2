# verified:
# says: No gradient flows back through the copy.
# %%
import copy, torch, torch.nn as nn
net = nn.Linear(2, 2)
net.hidden = net(torch.randn(1, 2))
# %%
for step in range(2):
    target = copy.deepcopy(net)
    loss = net.hidden.sum() + net(torch.randn(1, 2)).sum()
    loss.backward()
    net.hidden = net(torch.randn(1, 2))
