# title: The cache of a parametrized weight outlives one iteration
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm
layer = weight_norm(nn.Linear(3, 2))
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
# %%
with parametrize.cached():
    for x in torch.randn(3, 5, 3):
        loss = layer(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
