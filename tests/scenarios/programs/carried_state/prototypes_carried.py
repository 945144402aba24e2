# title: Class prototypes averaged over batches with their graph
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
embed = nn.Linear(3, 2)
opt = torch.optim.SGD(embed.parameters(), 0.1)
proto = torch.zeros(2)
# %%
for batch in torch.randn(4, 5, 3):
    z = embed(batch).tanh()
    proto = 0.8 * proto + 0.2 * z.mean(0)
    spread = (z - proto).pow(2).sum()
    opt.zero_grad()
    spread.backward()
    opt.step()
