# title: Accuracy as a loss
# kind: element0
# truth: measured.json
# %%
import torch
from torch import nn
net = nn.Linear(3, 3)
y = torch.randint(3, (5,))
# %%
wrong = (net(torch.randn(5, 3)).argmax(1) != y).float().mean()
wrong.backward()
