# title: Threads compute gradients of one model, one after the other
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
import threading
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
lock, totals = threading.Lock(), []

def replica(x):
    loss = net(x).square().mean() / 2
    with lock:
        loss.backward()
        totals.append(loss.item())
# %%
for step in range(3):
    optimizer.zero_grad()
    for shard in torch.randn(2, 5, 3):
        thread = threading.Thread(target=replica, args=(shard,))
        thread.start()
        thread.join()
    optimizer.step()
