# title: torch.tensor(list of items)
# kind: element0
# truth: measured.json
# %%
import torch
from torch import nn
net = nn.Linear(3, 1)
parts = [net(torch.randn(3)).item() for _ in range(3)]
# %%
loss = torch.tensor(parts).mean()
loss.backward()
