# title: A state is carried by a cell that is run again, and run backward in another
# kind: second_backward
# truth: measured.json
# run_order: 1 2 3 2 3
# %%
import torch
torch.manual_seed(0)
rnn = torch.nn.RNN(2, 3)
h = torch.zeros(1, 1, 3)
# %%
out, h = rnn(torch.randn(4, 1, 2), h)
# %%
out.sum().backward()
