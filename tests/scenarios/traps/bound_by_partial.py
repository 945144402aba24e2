# verified: retain_graph_earlier_call recompute_in_loop detach
# %%
import torch, torch.nn as nn
from functools import partial
net = nn.Linear(3, 3)
head = nn.Linear(3, 1)
x = torch.randn(4, 3)
f = torch.tanh(net(x))
def mse(f, y): return (head(f) - y).pow(2).mean()
crit = partial(mse, f)
# %%
l1 = crit(torch.ones(4, 1))
l1.backward()
l2 = crit(torch.zeros(4, 1))
l2.backward()
