# title: The state is a named tuple
# kind: second_backward
# truth: measured.json
# %%
import torch
from collections import namedtuple
State = namedtuple("State", "h c")
torch.manual_seed(0)
cell = torch.nn.LSTMCell(3, 5)
opt = torch.optim.Adam(cell.parameters())
# %%
s = State(torch.zeros(1, 5), torch.zeros(1, 5))
for i in range(4):
    s = State(*cell(torch.randn(1, 3), s))
    loss = s.h.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
