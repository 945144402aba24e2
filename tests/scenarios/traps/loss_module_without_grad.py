# verified: remove_no_grad
# %%
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
crit = nn.MSELoss()
x, y = torch.randn(5, 3), torch.randn(5, 1)
# %%
with torch.no_grad():
    out = net(x)
    loss = crit(out, y)
loss.backward()
