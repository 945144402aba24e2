# verified: retain_graph_earlier_call recompute_in_loop detach
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
A = nn.Linear(3, 3); B = nn.Linear(3, 3); out = nn.Linear(3, 1)
x = torch.randn(2, 3)
f = A(x).tanh()
la = f.pow(2).mean()
la.backward()
u = B(f).relu()
v = f * 2
lb = out(u + v).sum()
# %%
lb.backward()
