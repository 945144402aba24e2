# title: The diagonal of a saved tensor is filled
# kind: inplace
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
w = torch.randn(4, 4, requires_grad=True)
h = w.exp()
diag = h.diagonal()
diag.fill_(0)
loss = h.sum()
# %%
loss.backward()
