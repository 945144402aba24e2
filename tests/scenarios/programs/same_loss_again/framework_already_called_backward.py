# title: backward duplicated in the criterion and in the loop
# kind: second_backward
# source: https://github.com/dropreg/R-Drop/issues/8
# source: https://github.com/huggingface/trl/issues/130
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=.1)
# %%
def criterion(x):
    loss = net(x).pow(2).mean()
    loss.backward()
    return loss
# %%
for step in range(2):
    opt.zero_grad()
    loss = criterion(torch.randn(4, 3))
    loss.backward()
    opt.step()
