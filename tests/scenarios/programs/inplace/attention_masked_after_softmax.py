# title: Attention weights are multiplied by a mask in place
# kind: inplace
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
import torch.nn.functional as F

class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, mask):
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / x.shape[-1] ** 0.5
        weights = F.softmax(scores, dim=-1)
        weights *= mask
        return weights @ self.value(x)

layer, mask = Attention(4), torch.ones(3, 3).tril()
# %%
out = layer(torch.randn(2, 3, 4), mask)
loss = out.square().mean()
# %%
loss.backward()
