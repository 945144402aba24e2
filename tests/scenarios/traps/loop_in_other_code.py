# verified:
# says: detach `net.h` after each backward in the code that `fit(net)` calls
# %%
import torch
from torch import nn
torch.manual_seed(0)
code = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.h = torch.nn.GRUCell(4, 8), torch.zeros(2, 8)
    def forward(self, x):
        self.h = self.rnn(x, self.h)
        return self.h
def fit(net):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(2, 4)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
exec(compile(code, "loops.py", "exec"))
net = Net()
# %%
fit(net)
