# title: Forward hook appends activations with their graph
# kind: leak
# source: https://github.com/meta-pytorch/opacus/issues/176
# source: https://github.com/chr5tphr/zennit/pull/13
# source: https://github.com/growingnet/gromo/issues/135
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
feats = []
net[1].register_forward_hook(lambda m, i, o: feats.append(o))
# %%
for step in range(5):
    net(torch.randn(2, 3)).sum().backward()
# %%
len(feats)
