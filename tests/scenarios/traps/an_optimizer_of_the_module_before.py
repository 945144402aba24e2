# verified:
# says: no optimizer that makes a step (In[2], line 5) holds them. | The optimizer has the parameters that `net` had before
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
