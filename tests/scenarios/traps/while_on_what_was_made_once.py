# verified: recompute_in_loop
# %%
import torch
w = torch.tensor(3.0, requires_grad=True)
err = (w - 1) ** 2
# %%
n = 0
while err > 0.1 and n < 1000:
    loss = err * 2
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad = None
    n += 1
print(n)
