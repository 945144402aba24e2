# verified: detach
# says: `prev.update({
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def step(x, *, prev={}):
    out = net(x)
    loss = out.pow(2).mean()
    if 0 in prev:
        loss = loss + (out - prev[0]).pow(2).mean()
    prev[0] = out
    opt.zero_grad()
    loss.backward()
    opt.step()
# %%
for x in torch.randn(3, 5, 4):
    step(x)
