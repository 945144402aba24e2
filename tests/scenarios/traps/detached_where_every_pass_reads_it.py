# verified: detach recompute_in_loop
# says: Then `a` gets no gradient from either call.
# %%
import torch
a = torch.ones(3, requires_grad=True)
b = torch.ones(3, requires_grad=True)
h = a.exp()
# %%
for i in range(2):
    loss = (h * b).sum()
    loss.backward()
    with torch.no_grad():
        b -= 0.1 * b.grad
