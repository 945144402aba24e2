# title: backward(inputs=...) frees only the nodes it ran: two disjoint branches can be run one after the other
# kind: ok
# source: https://github.com/pytorch/pytorch/pull/3151
# truth: measured.json
# %%
import torch
a = torch.randn(3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
u, v = a.exp(), b.exp()
out = u + v
# %%
out.backward(torch.ones(3), inputs=[a])
# %%
out.backward(torch.ones(3), inputs=[b])
