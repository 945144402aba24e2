# verified: recompute_in_loop
# %%
import torch, torch.nn as nn
enc, h1, h2 = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
o1 = torch.optim.SGD([*enc.parameters(), *h1.parameters()], lr=0.1)
o2 = torch.optim.SGD([*enc.parameters(), *h2.parameters()], lr=0.1)
x = torch.randn(5, 3)
# %%
for i in range(2):
    z = torch.tanh(enc(x))
    z = torch.tanh(z @ enc.weight @ enc.weight.T)
    l1 = h1(z).pow(2).mean()
    l2 = h2(z).pow(2).mean()
    o1.zero_grad()
    l1.backward(retain_graph=True)
    o1.step()
    o2.zero_grad()
    l2.backward()
    o2.step()
