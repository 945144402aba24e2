# title: A row of the weight is zeroed between forward and backward
# kind: inplace
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(x)))

net = Scorer()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
# %%
for x in torch.randn(3, 5, 3):
    loss = net(x).logsumexp(1).mean()
    with torch.no_grad():
        net.outer.weight[0] = 0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
