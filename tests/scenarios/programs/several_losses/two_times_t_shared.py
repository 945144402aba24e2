# title: k = 2*t shared by two losses (issue #11192, 'case 3')
# kind: second_backward
# source: https://github.com/pytorch/pytorch/issues/11192
# truth: measured.json
# %%
import torch
t = torch.tensor(1.0, requires_grad=True)
k = 2 * t
l1 = 2 * k
l2 = 3 * k
# %%
l1.backward()
# %%
l2.backward()
