# title: Double backward: a Hessian-vector product by two autograd.grad calls
# kind: ok
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
w = torch.randn(5, requires_grad=True)
def energy(v):
    return (v.sin() * v.exp()).sum()
# %%
def hvp(v):
    first, = torch.autograd.grad(energy(w), w, create_graph=True)
    second, = torch.autograd.grad(first @ v, w)
    return second
# %%
rows = torch.stack([hvp(e) for e in torch.eye(5)])
assert torch.allclose(rows, rows.T, atol=1e-5)
