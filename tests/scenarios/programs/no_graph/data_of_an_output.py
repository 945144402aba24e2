# title: The loss is made of .data
# kind: element0
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
out = net(torch.randn(4, 3)).data
loss = out.pow(2).mean()
loss.backward()
