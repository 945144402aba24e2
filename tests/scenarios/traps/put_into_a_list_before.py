# verified:
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 3)
head = nn.Linear(3, 1)
x = torch.randn(4, 3)
opt = torch.optim.SGD([*head.parameters(), *net.parameters()], lr=0.1)
# %%
h = torch.tanh(net(x))
feats = []
feats.append(h)
for i in range(3):
    l1 = head(feats[0]).pow(2).mean()
    opt.zero_grad()
    l1.backward()
    opt.step()
    print(h.shape)
