# title: albanD's drawing: y = a * 2 shared by x_out0 and x_out1
# kind: second_backward
# source: seed 002 (discuss.pytorch.org: Backpropagation - Graph is reused while it shouldn't)
# truth: measured.json
# %%
import torch
a = torch.rand(10, requires_grad=True)
y = a * 2
# %%
x_out0 = 2 * y
loss0 = x_out0.sum()
loss0.backward()
# %%
x_out1 = 2 * y
loss1 = x_out1.sum()
loss1.backward()
