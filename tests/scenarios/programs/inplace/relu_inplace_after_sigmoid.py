# title: relu_ on the result of sigmoid, which saved it
# kind: inplace
# truth: measured.json
# %%
import torch
w = torch.randn(4, requires_grad=True)
# %%
y = torch.sigmoid(w)
torch.relu_(y)
# %%
y.sum().backward()
