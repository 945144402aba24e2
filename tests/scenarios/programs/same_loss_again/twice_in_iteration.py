# title: backward twice in one iteration
# kind: second_backward
# source: seed 004 (https://discuss.pytorch.org/t/which-is-freed-which-is-not/8636)
# truth: measured.json
# %%
import torch
net = torch.nn.Linear(3, 3)
a = torch.randn(2, 3)
# %%
for i in range(5):
    x_out = net(a)
    y = torch.sum(x_out)
    y.backward()
    y.backward()
