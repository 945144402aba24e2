# verified:
# says: `opt.step()` (In[2], line 5) went by no gradient: none of its parameters has one. The backward before it gave gradients to `net.bias` and `net.weight`, which `opt` does not have.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net = nn.Linear(2, 1)
# %%
for i in range(3):
    loss = net(torch.randn(4, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss)
