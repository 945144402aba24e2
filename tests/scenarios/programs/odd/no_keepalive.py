# title: The tracker must never keep a graph alive: weakrefs die after del
# kind: nasty
# source: https://github.com/pytorch/pytorch/issues/84711
# source: https://github.com/pytorch/pytorch/pull/189025
# truth: measured.json
# %%
import torch, weakref
class Big(torch.Tensor):
    pass
x = torch.randn(1000, requires_grad=True)
# %%
y = x.exp()
loss = y.sum()
r_loss, r_y = weakref.ref(loss), weakref.ref(y)
try:
    weakref.ref(y.grad_fn)
    node_weakref = True
except TypeError:
    node_weakref = False
# %%
del loss, y
dead = (r_loss() is None, r_y() is None)
