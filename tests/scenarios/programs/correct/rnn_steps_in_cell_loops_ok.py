# title: Time steps in an inner loop of the cell itself
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
W, U = nn.Linear(2, 3), nn.Linear(3, 3)
# %%
for epoch in range(3):
    h = torch.zeros(3)
    outputs = []
    for t in range(5):
        h = torch.tanh(W(torch.randn(2)) + U(h))
        outputs.append(h)
    loss = torch.stack(outputs).sum()
    loss.backward()
