# title: h += x inside a module's forward, called from another cell
# kind: inplace
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def forward(self, x):
        h = self.fc(x).sigmoid()
        h += x
        return h
# %%
block = Block()
out = block(torch.randn(2, 3))
# %%
out.sum().backward()
