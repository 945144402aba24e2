# verified:
# says: `net.fc = nn.Linear(4, 2)` (In[3], line 2) replaced them. The optimizer has the parameters that `net` had before, when `opt = torch.optim.SGD(
# never says: again
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(3, 4).requires_grad_(False), nn.Linear(4, 5)
    def forward(self, x):
        return self.fc(torch.relu(self.body(x)))
# %%
def build():
    net = Net()
    opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1)
    return net, opt
net, opt = build()
# %%
def set_classes(net):
    net.fc = nn.Linear(4, 2)
set_classes(net)
for step in range(10):
    loss = net(torch.randn(6, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
