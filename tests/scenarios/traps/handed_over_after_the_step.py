# verified: detach
# says: `prev` was built in In[2], line 2, iteration 0. | reaches the same node through `prev`.
# %%
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh()); opt = torch.optim.SGD(net.parameters(), lr=.1)
prev = None
# %%
for x in torch.randn(4, 2, 3):
    out = net(x)
    loss = out.pow(2).mean()
    if prev is not None:
        loss = loss + (out - prev).abs().mean()
    opt.zero_grad(); loss.backward(); opt.step()
    prev = out
