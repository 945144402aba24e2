# holder: history\['val'\]
# iterations: N
# %%
N = 9
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.01)
history = {"train": [], "val": []}
# %%
for epoch in range(N):
    loss = (net(torch.randn(16, 4)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history["train"].append(loss.item())
    history["val"].append((net(torch.randn(16, 4)) - 1).pow(2).mean())
