# title: Batches are encoded once and gone through twice
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
import itertools
encoder, head = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid()), nn.Linear(4, 1)
optimizer = torch.optim.SGD(head.parameters(), 0.1)
encoded = [encoder(x) for x in torch.randn(2, 5, 3)]
# %%
stream = itertools.cycle(encoded)
for step in range(4):
    h = next(stream)
    loss = head(h).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
