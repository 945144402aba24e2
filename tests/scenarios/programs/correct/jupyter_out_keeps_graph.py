# title: Out[n] and _ keep the graph alive after del
# kind: leak
# source: https://github.com/pytorch/pytorch/issues/36874
# source: https://github.com/jupyter/notebook/issues/2201
# truth: measured.json
# %%
import torch, weakref
x = torch.randn(1000, requires_grad=True)
# %%
y = x.exp()
ref = weakref.ref(y)
y
# %%
del y
alive = ref() is not None
