# title: A spiking net's membrane in a dict, never reset between batches
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
fc = nn.Linear(3, 2)
mem = {"v": torch.zeros(2)}
# %%
for batch in range(2):
    out = 0
    for t in range(3):
        mem["v"] = 0.9 * mem["v"] + fc(torch.randn(3))
        out = out + mem["v"].sigmoid()
        mem["v"] = mem["v"] * (1 - out.tanh())
    out.sum().backward()
