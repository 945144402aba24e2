# title: The loop is in one function, backward in another
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
cell = torch.nn.RNNCell(3, 4)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)

def learn(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
# %%
def fit(steps):
    h = torch.zeros(2, 4)
    for t in range(steps):
        h = cell(torch.randn(2, 3), h)
        learn(h.pow(2).mean())

fit(3)
