# title: A module keeps its state; the loop is in a function
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.register_buffer("state", torch.zeros(2, 4))

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state

net = Stateful()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
def fit(steps):
    for t in range(steps):
        loss = net(torch.randn(2, 3)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

fit(4)
