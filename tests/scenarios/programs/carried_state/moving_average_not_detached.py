# title: Exponential moving average of a loss, not detached
# kind: second_backward
# source: class of https://github.com/growingnet/gromo/issues/135
# source: https://github.com/DeepRank/deeprank/issues/210
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=.1)
baseline = torch.zeros(())
# %%
for step in range(3):
    out = net(torch.randn(4, 3)).pow(2).mean()
    baseline = 0.9 * baseline + 0.1 * out
    loss = (out - baseline).abs()
    opt.zero_grad()
    loss.backward()
    opt.step()
