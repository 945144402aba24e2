# title: A memory queue whose keys still have their graph
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
f = nn.Linear(3, 2)
bank = []
# %%
for i in range(3):
    k = f(torch.randn(2, 3)).tanh()
    bank.append(k)
    sim = torch.cat(bank) @ k.T
    sim.logsumexp(1).sum().backward()
