# title: The last two states are kept in a deque
# kind: second_backward
# truth: measured.json
# %%
import torch
from collections import deque
torch.manual_seed(0)
lin = torch.nn.Linear(6, 3)
opt = torch.optim.SGD(lin.parameters(), 0.1)
past = deque([torch.zeros(3), torch.zeros(3)], maxlen=2)
# %%
for t in range(4):
    h = torch.tanh(lin(torch.cat(list(past))))
    past.append(h)
    loss = (h - 1).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
