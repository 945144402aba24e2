# title: functools.partial fixes weights that have a history
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
from functools import partial
import torch.nn.functional as F
scores, net = nn.Parameter(torch.zeros(3)), nn.Linear(4, 3)
optimizer = torch.optim.Adam([scores, *net.parameters()])

def weighted(logits, labels, weight):
    return F.cross_entropy(logits, labels, reduction="none").mul(weight[labels]).mean()

criterion = partial(weighted, weight=scores.softmax(0))
# %%
for step in range(3):
    x, labels = torch.randn(6, 4), torch.randint(3, (6,))
    loss = criterion(net(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
