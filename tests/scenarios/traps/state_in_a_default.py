# verified:
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
lin = nn.Linear(2, 2)
def step(x, mem=[torch.zeros(1, 2)]):
    mem[0] = lin(x + mem[0]).tanh()
    return mem[0].sum()
# %%
for t in range(2):
    step(torch.ones(1, 2)).backward()
