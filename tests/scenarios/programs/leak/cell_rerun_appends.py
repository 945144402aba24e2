# title: The cell appends its loss; it is run four times
# kind: leak
# truth: measured.json
# run_order: 1 2 2 2 2
# %%
import torch
from torch import nn
torch.manual_seed(0)
m = nn.Linear(2, 1)
curve = []
# %%
loss = m(torch.randn(6, 2)).tanh().mean()
m.zero_grad()
loss.backward()
curve.append(loss)
