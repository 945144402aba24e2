# title: The recurrent state is a dataclass that is never detached
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
from dataclasses import dataclass

@dataclass
class State:
    h: torch.Tensor
    c: torch.Tensor

cell, head = nn.LSTMCell(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], 1e-3)
batches = torch.randn(4, 2, 3)
# %%
state = State(torch.zeros(2, 4), torch.zeros(2, 4))
for x in batches:
    state.h, state.c = cell(x, (state.h, state.c))
    loss = head(state.h).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
