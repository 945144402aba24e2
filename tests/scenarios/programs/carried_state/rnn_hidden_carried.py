# title: RNN hidden state carried over without detach
# kind: second_backward
# source: https://github.com/MorvanZhou/PyTorch-Tutorial/issues/57
# source: https://github.com/quark0/darts/issues/56
# source: https://discuss.pytorch.org/t/implementing-truncated-backpropagation-through-time/15500
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
cell = nn.RNNCell(3, 4)
head = nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=.05)
xs = torch.randn(4, 2, 3)
# %%
h = torch.zeros(2, 4)
for t in range(4):
    h = cell(xs[t], h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
