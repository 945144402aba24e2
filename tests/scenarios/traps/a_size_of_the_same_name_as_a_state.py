# verified: detach
# never says: self.h = h.detach()
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
# %%
class Carry:
    h = None
class Net(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.h = h
        self.cell = nn.GRUCell(3, h)
    def forward(self, x, carry):
        before = carry.h if carry.h is not None else torch.zeros(2, self.h)
        return self.cell(x, before)
# %%
net, carry = Net(4), Carry()
opt = torch.optim.SGD(net.parameters(), 0.1)
for step in range(4):
    h = net(torch.randn(2, 3), carry)
    loss = h.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    carry.h = h
