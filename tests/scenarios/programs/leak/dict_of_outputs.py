# title: Predictions appended to a dict of lists
# kind: leak
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
f = nn.Linear(3, 2)
logs = {"pred": [], "step": []}
# %%
for i, x in enumerate(torch.randn(5, 4, 3)):
    out = f(x).tanh()
    out.sum().backward()
    f.zero_grad()
    logs["pred"].append(out)
    logs["step"].append(i)
