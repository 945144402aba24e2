# verified: remove_no_grad
# %%
import torch, torch.nn as nn
enc, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
x = torch.randn(5, 3)
# %%
with torch.no_grad():
    h = torch.tanh(enc(x))
    out = head(h)
loss = out.pow(2).mean()
loss.backward()
opt.step()
