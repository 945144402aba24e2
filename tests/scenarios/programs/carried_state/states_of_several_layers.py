# title: Each layer has a tuple of states in one list
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
cells = torch.nn.ModuleList([torch.nn.LSTMCell(3, 3), torch.nn.LSTMCell(3, 3)])
opt = torch.optim.SGD(cells.parameters(), 0.1)
states = [(torch.zeros(1, 3), torch.zeros(1, 3)) for _ in cells]
# %%
for x in torch.randn(4, 1, 3):
    for k, cell in enumerate(cells):
        states[k] = cell(x, states[k])
        x = states[k][0]
    loss = x.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
