# verified:
# says: `argmax` has no derivative
# never says: ran under
# %%
import torch, torch.nn as nn
from contextlib import nullcontext
net = nn.Linear(3, 2)
def run(x, train=True):
    with nullcontext() if train else torch.no_grad():
        y = net(x)
    return y.argmax(1).float()
# %%
loss = run(torch.randn(4, 3)).sum()
loss.backward()
