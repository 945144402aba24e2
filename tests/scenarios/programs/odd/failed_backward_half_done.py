# title: A failing backward has already changed some .grad
# kind: nasty
# source: research (measured)
# truth: measured.json
# %%
import torch
a = torch.ones(3, requires_grad=True)
b = torch.ones(3, requires_grad=True)
shared = a.exp()
shared.sum().backward()
# %%
loss = (shared + (b * 2)).sum()
# %%
loss.backward()
# %%
(a.grad, b.grad)
