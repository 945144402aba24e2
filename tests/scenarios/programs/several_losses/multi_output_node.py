# title: unbind: one node, several outputs; freeing through one output hits the others
# kind: second_backward
# source: research
# truth: measured.json
# %%
import torch
x = torch.randn(3, 4, requires_grad=True)
vals, idx = x.exp().sort(dim=1)
q, k, v = vals.unbind(0)
# %%
q.sum().backward()
# %%
k.sum().backward()
