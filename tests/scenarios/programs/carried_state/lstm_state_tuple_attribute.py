# title: LSTM state kept as a tuple attribute between train steps
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.top = nn.LSTM(2, 3), nn.Linear(3, 1)
        self.state = None
    def forward(self, x):
        y, self.state = self.rnn(x, self.state)
        return self.top(y[-1])
# %%
net = Forecaster()
opt = torch.optim.SGD(net.parameters(), 0.1)
for window in torch.randn(3, 4, 1, 2):
    opt.zero_grad()
    err = net(window).pow(2).sum()
    err.backward()
    opt.step()
