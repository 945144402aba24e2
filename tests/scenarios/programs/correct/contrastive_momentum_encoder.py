# title: Momentum encoder updated under no_grad, keys queued without graph
# kind: ok
# truth: measured.json
# %%
import copy
from collections import deque
import torch
from torch import nn
torch.manual_seed(0)
query = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
key = copy.deepcopy(query)
for p in key.parameters():
    p.requires_grad_(False)
opt = torch.optim.SGD(query.parameters(), 0.1)
queue = deque([torch.randn(2, 3) for _ in range(2)], maxlen=3)
# %%
for step in range(4):
    batch = torch.randn(2, 4)
    q = nn.functional.normalize(query(batch), dim=1)
    with torch.no_grad():
        for a, b in zip(key.parameters(), query.parameters()):
            a.mul_(0.9).add_(b, alpha=0.1)
        k = nn.functional.normalize(key(batch + 0.1), dim=1)
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ torch.cat(list(queue)).T], 1)
    opt.zero_grad()
    nn.functional.cross_entropy(logits, torch.zeros(2, dtype=torch.long)).backward()
    opt.step()
    queue.append(k)
