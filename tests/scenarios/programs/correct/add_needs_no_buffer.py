# title: x + 1 can be backwarded any number of times
# kind: ok
# source: seed 000 (bobbyhadz.com article)
# truth: measured.json
# %%
import torch
x = torch.ones(1, 1, requires_grad=True)
y = x + 1
# %%
y.backward(torch.ones(1, 1))
# %%
y.backward(torch.ones(1, 1))
x.grad
