# title: The state is a tuple of a tensor and a number
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
cell = torch.nn.RNNCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), 0.1)
def advance(x, state):
    h, n = state
    return cell(x, h), n + 1
# %%
state = (torch.zeros(1, 3), 0)
for x in torch.randn(4, 1, 2):
    state = advance(x, state)
    loss = state[0].pow(2).sum()
    opt.zero_grad(); loss.backward(); opt.step()
