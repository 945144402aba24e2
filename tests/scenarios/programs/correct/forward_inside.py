# title: y = sum(net(a)) inside the loop
# kind: ok
# source: seed 004 (https://discuss.pytorch.org/t/which-is-freed-which-is-not/8636)
# truth: measured.json
# %%
import torch
net = torch.nn.Linear(3, 3)
a = torch.randn(2, 3)
# %%
for i in range(5):
    y = torch.sum(net(a))
    y.backward()
