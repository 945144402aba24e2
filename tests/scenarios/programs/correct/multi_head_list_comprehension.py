# title: An ensemble trained by a comprehension of independent graphs
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
members = [nn.Linear(2, 1) for _ in range(3)]
opts = [torch.optim.SGD(m.parameters(), 0.1) for m in members]
# %%
for _ in range(3):
    x = torch.randn(4, 2)
    costs = [m(x).square().mean() for m in members]
    [c.backward() for c in costs]
    [(o.step(), o.zero_grad()) for o in opts]
