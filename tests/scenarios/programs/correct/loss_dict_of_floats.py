# title: A dict of losses, summed once; only floats are logged
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
trunk, heads = nn.Linear(3, 4), nn.ModuleDict({"a": nn.Linear(4, 1), "b": nn.Linear(4, 2)})
opt = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], 0.1)
log = {"a": [], "b": []}
# %%
def batches(n):
    for _ in range(n):
        yield torch.randn(5, 3)
for x in batches(4):
    z = trunk(x).relu()
    losses = {name: head(z).square().mean() for name, head in heads.items()}
    opt.zero_grad()
    sum(losses.values()).backward()
    opt.step()
    for name, value in losses.items():
        log[name].append(value.item())
