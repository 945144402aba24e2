# title: A compiled model in a training loop
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
fast = torch.compile(net, backend="eager")
optimizer = torch.optim.SGD(net.parameters(), 0.1)
# %%
for step in range(3):
    optimizer.zero_grad()
    loss = fast(torch.randn(5, 3)).square().mean()
    loss.backward()
    optimizer.step()
