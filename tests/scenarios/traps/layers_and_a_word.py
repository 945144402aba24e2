# verified:
# %%
import torch, torch.nn as nn
cells = nn.ModuleList([nn.LSTMCell(3, 3), nn.LSTMCell(3, 3)])
opt = torch.optim.SGD(cells.parameters(), lr=0.1)
# %%
state = [(torch.zeros(2, 3), torch.zeros(2, 3)), (torch.zeros(2, 3), torch.zeros(2, 3)), "step"]
for i in range(4):
    x = torch.randn(2, 3)
    for k, c in enumerate(cells):
        state[k] = c(x, state[k])
        x = state[k][0]
    loss = x.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
