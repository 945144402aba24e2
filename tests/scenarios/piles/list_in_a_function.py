# holder: losses
# %%
N = 30
import torch
from torch import nn

net = nn.Linear(3, 1)


def epoch(net, steps):
    losses = []
    for i in range(steps):
        loss = net(torch.randn(4, 3)).pow(2).mean()
        loss.backward()
        losses.append(loss)
    return sum(l.item() for l in losses) / len(losses)


# %%
mean = epoch(net, N)
