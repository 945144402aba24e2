# verified: detach
# %%
import torch, torch.nn as nn
cell = nn.GRUCell(3, 4)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
# %%
history = [None]
for i in range(4):
    x = torch.randn(2, 3)
    h = cell(x, history[-1])
    history.append(h)
    loss = h.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
