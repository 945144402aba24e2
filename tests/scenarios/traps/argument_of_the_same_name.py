# verified: retain_graph_earlier_call detach
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 3)
head = nn.Linear(3, 1)
opt = torch.optim.SGD([*head.parameters(), *net.parameters()], lr=0.1)
x = torch.randn(4, 3)
f = torch.tanh(net(x))
def loss_of(x, f=f): return head(f).pow(2).mean()
# %%
l1 = loss_of(x)
l1.backward()
l2 = loss_of(x)
l2.backward()
