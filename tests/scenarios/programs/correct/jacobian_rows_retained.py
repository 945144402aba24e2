# title: Jacobian row by row: retain_graph on all but the last
# kind: ok
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
x = torch.randn(4, requires_grad=True)
y = torch.stack([x.prod(), x.exp().sum(), (x ** 3).sum()])
# %%
rows = []
for k in range(len(y)):
    row, = torch.autograd.grad(y[k], x, retain_graph=k < len(y) - 1)
    rows.append(row)
J = torch.stack(rows)
