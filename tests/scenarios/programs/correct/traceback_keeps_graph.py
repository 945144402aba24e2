# title: The last exception's traceback keeps locals with graphs
# kind: leak
# source: https://github.com/pytorch/pytorch/issues/27600
# source: https://github.com/ipython/ipython/pull/11572
# source: https://github.com/pytorch/pytorch/issues/37726
# truth: measured.json
# %%
import torch, weakref, sys
x = torch.randn(1000, requires_grad=True)
refs = []
def step():
    act = x.exp()
    refs.append(weakref.ref(act))
    raise ValueError("bad batch")
# %%
step()
# %%
alive = refs[0]() is not None
