# verified:
# %%
import torch
import torch.nn as nn
backbone = nn.Linear(4, 8).requires_grad_(False)
head = nn.Linear(8, 2)
head.requires_grad_(False)
# %%
loss = head(backbone(torch.randn(3, 4))).mean()
loss.backward()
