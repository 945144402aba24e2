# title: A recurrent net writes its states into one buffer and reads them back
# kind: inplace
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

cell = nn.Linear(4, 4)
states = torch.zeros(5, 2, 4)
inputs = torch.randn(5, 2, 4)
# %%
for t in range(1, 5):
    states[t] = torch.tanh(cell(states[t - 1]) + inputs[t])
loss = states[-1].sum()
# %%
loss.backward()
