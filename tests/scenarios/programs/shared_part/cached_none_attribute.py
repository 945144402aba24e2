# title: A lazily computed attribute: if self._kernel is None
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(3))
        self._kernel = None
    def forward(self, x):
        if self._kernel is None:
            self._kernel = self.raw.softmax(0)
        return (x * self._kernel).sum()
# %%
filt = Filter()
for x in torch.randn(3, 3):
    filt(x).pow(2).backward()
