# title: retain_graph=True on the first call, nothing on the last
# kind: ok
# source: seed 000 (bobbyhadz.com article)
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(5, 2)
loss = nn.CrossEntropyLoss()(net(torch.randn(5)), torch.tensor([1., 2.]))
# %%
loss.backward(retain_graph=True)
g1 = net.weight.grad.clone()
# %%
loss.backward()
