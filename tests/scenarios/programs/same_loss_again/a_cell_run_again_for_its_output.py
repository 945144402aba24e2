# title: A cell runs backward again on features of another cell
# kind: second_backward
# truth: measured.json
# run_order: 1 2 3 4 3 4 4
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
# %%
x = torch.randn(4, 2)
# %%
out = net(x).tanh()
# %%
loss = out.mean()
loss.backward()
