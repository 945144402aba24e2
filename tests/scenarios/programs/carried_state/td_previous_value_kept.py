# title: TD(0): the next state's value becomes the previous one, with its graph
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
V = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
states = torch.randn(5, 2)
# %%
v = V(states[0])
for s in states[1:]:
    v_next = V(s)
    delta = 0.5 + 0.9 * v_next - v
    delta.pow(2).sum().backward()
    v = v_next
