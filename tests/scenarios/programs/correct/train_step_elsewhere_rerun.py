# title: The step's function in one cell, the loop in another, cells run again
# kind: ok
# truth: measured.json
# run_order: 1 2 3 3 2 3
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 5), nn.Sigmoid(), nn.Linear(5, 1))
optimizer = torch.optim.RMSprop(net.parameters(), 1e-3)
# %%
def train_step(x, y):
    optimizer.zero_grad()
    loss = (net(x) - y).abs().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()
# %%
history = [train_step(torch.randn(4, 3), torch.zeros(4, 1)) for _ in range(4)]
loss = train_step(torch.randn(4, 3), torch.ones(4, 1))
loss
