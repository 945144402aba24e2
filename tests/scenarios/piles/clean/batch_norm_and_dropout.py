# %%
N = 20
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))
opt = torch.optim.RMSprop(net.parameters())
seen = []
net[1].register_forward_hook(lambda m, i, o: seen.append(o.detach().mean()))
# %%
for epoch in range(2):
    for it in range(N):
        loss = net(torch.randn(6, 4)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
