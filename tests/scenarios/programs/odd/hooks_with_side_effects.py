# title: Saved-tensor hooks that count: reading _saved_* calls unpack
# kind: nasty
# source: https://github.com/pytorch/pytorch/pull/62362
# truth: measured.json
# %%
import torch
log = []
def pack(t):
    log.append("pack")
    return t
def unpack(t):
    log.append("unpack")
    return t
# %%
x = torch.randn(3, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    y = x.exp()
# %%
before = log.count("unpack")
y.sum().backward()
after = log.count("unpack")
