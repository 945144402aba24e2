# title: A shared encoding in two statements, used in a loop
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
enc = nn.Linear(3, 3)
raw = enc(torch.randn(4, 3))
code = raw.exp()
code = code / 2
head = nn.Linear(3, 1)
# %%
for step in range(3):
    (head(code).mean() ** 2).backward()
