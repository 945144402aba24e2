# title: zero_grad() does not bring freed buffers back
# kind: second_backward
# source: seed 000 (bobbyhadz.com article)
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(5, 2)
opt = torch.optim.Adam(net.parameters())
loss = nn.CrossEntropyLoss()(net(torch.randn(5)), torch.tensor([1., 2.]))
# %%
loss.backward()
opt.step()
opt.zero_grad()
# %%
loss.backward()
