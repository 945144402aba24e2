# title: y built once, backward in the loop
# kind: second_backward
# source: seed 004 (https://discuss.pytorch.org/t/which-is-freed-which-is-not/8636)
# truth: measured.json
# %%
import torch
net = torch.nn.Linear(3, 3)
a = torch.randn(2, 3)
y = torch.sum(net(a))
# %%
for i in range(5):
    y.backward()
