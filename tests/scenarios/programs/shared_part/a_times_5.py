# title: c = a * 5; c.backward(); c.backward()
# kind: second_backward
# source: seed 004 (https://discuss.pytorch.org/t/which-is-freed-which-is-not/8636)
# truth: measured.json
# %%
import torch
a = torch.tensor(2.0, requires_grad=True)
c = a * 5
c.backward()
# %%
c.backward()
