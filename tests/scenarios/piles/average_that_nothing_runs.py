# holder: baseline
# iterations: N
# %%
N = 25
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.01)
baseline = torch.zeros(())
# %%
for episode in range(N):
    value = net(torch.randn(16, 4)).mean()
    loss = (net(torch.randn(16, 4)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    baseline = 0.95 * baseline + 0.05 * value.exp()
