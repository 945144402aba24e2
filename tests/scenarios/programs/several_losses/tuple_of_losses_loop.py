# title: backward on each loss of a tuple
# kind: second_backward
# source: https://github.com/mosaicml/composer/pull/1240
# source: https://github.com/catalyst-team/catalyst/issues/1435
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 3)
x = torch.randn(6, 3)
# %%
out = net(x).tanh()
losses = [out[:, k].pow(2).mean() for k in range(3)]
# %%
for l in losses:
    l.backward()
