# verified:
# never says: drop it | not needed
# %%
import torch
def jacobian(f, v):
    x = v.clone().requires_grad_()
    y, rows = f(x), []
    for i in range(3):
        x.grad = None
        y[i].backward(retain_graph=True)
        rows.append(x.grad.clone())
    return torch.stack(rows)
# %%
J = jacobian(torch.sin, torch.randn(3))
