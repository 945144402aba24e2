# title: backward(create_graph=True): parameter and its .grad form a cycle
# kind: leak
# source: https://github.com/pytorch/pytorch/issues/4661
# source: https://github.com/pytorch/pytorch/issues/7343
# source: https://github.com/pytorch/pytorch/issues/78622
# truth: measured.json
# %%
import torch, gc, weakref
refs = []
# %%
for i in range(5):
    x = torch.randn(1000, requires_grad=True)
    y = x.tanh().sum()
    y.backward(create_graph=True)
    refs.append(weakref.ref(x))
# %%
del x, y
gc.collect()
alive = sum(r() is not None for r in refs)
alive
