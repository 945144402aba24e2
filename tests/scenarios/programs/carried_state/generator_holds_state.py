# title: A generator keeps the hidden state in its frame
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
cell = nn.RNNCell(2, 3)
def rollout():
    h = torch.zeros(1, 3)
    while True:
        h = cell(torch.randn(1, 2), h)
        yield h
# %%
states = rollout()
for i in range(3):
    loss = next(states).pow(2).sum()
    loss.backward()
