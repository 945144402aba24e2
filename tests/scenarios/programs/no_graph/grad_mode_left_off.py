# title: set_grad_enabled(False) in an earlier cell is still on
# kind: element0
# truth: measured.json
# %%
import torch
from torch import nn
net = nn.Linear(2, 1)
# %%
torch.set_grad_enabled(False)
val = net(torch.randn(3, 2)).mean()
# %%
loss = net(torch.randn(3, 2)).mean()
loss.backward()
# %%
torch.set_grad_enabled(True)
