# title: del b does not hurt: the buffer is held by the node
# kind: ok
# source: seed 002 (discuss.pytorch.org: Backpropagation - Graph is reused while it shouldn't)
# truth: measured.json
# %%
import torch
a = torch.tensor(1., requires_grad=True)
b = torch.tensor(2., requires_grad=True)
c = a * b
# %%
for _ in range(5):
    c.backward(retain_graph=True)
    print(a.grad, b.grad)
# %%
del b
for _ in range(3):
    c.backward(retain_graph=True)
