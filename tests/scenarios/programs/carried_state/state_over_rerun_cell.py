# title: The hidden state survives from one run of the cell to the next
# kind: second_backward
# truth: measured.json
# run_order: 1 2 2
# %%
import torch
from torch import nn
torch.manual_seed(0)
rnn = nn.RNN(2, 3)
carry = torch.zeros(1, 1, 3)
# %%
out, carry = rnn(torch.randn(4, 1, 2), carry)
out.pow(2).sum().backward()
