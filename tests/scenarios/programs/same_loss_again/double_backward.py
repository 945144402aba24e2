# title: Calling backward twice on the same loss
# kind: second_backward
# source: seed 000 (bobbyhadz.com article)
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
feats = torch.randn(5)
want = torch.tensor([1., 2.])
net = nn.Linear(5, 2)
# %%
scores = net(feats)
loss = nn.CrossEntropyLoss()(scores, want)
# %%
loss.backward()
# %%
loss.backward()
