# title: SAM: second pass reuses the first forward's output
# kind: second_backward
# source: https://github.com/davda54/sam/issues/45
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
x, t = torch.randn(5, 3), torch.tensor([0, 1, 0, 1, 1])
output = net(x)
# %%
loss = nn.functional.cross_entropy(output, t)
loss.backward()
with torch.no_grad():
    for p in net.parameters():
        p.add_(0.05 * p.grad / p.grad.norm())
# %%
nn.functional.cross_entropy(output, t).backward()
