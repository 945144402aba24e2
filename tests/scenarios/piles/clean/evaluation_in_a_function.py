# %%
N = 10
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)


def train(steps):
    total, outs = 0.0, []
    for i in range(steps):
        out = net(torch.randn(4, 3))
        loss = out.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        outs.append(out.detach())
    return total / steps


@torch.no_grad()
def evaluate(steps):
    return [net(torch.randn(4, 3)) for i in range(steps)]


# %%
history = []
for epoch in range(4):
    history.append((train(N), evaluate(N)))
