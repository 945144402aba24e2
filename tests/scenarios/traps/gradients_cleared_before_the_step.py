# verified:
# says: `opt.zero_grad()` (In[2], line 4) clears the gradients that the backward before it gave.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for i in range(3):
    loss = net(torch.randn(4, 2)).pow(2).mean()
    loss.backward()
    opt.zero_grad()
    opt.step()
