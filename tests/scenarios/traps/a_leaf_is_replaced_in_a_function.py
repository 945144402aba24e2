# verified: under_no_grad
# says: made a new tensor in the pass before: it is no leaf.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
def train(w, x, steps=3):
    for i in range(steps):
        loss = (x @ w).square().mean()
        loss.backward()
        w = w - 0.1 * w.grad
    return w
# %%
w = torch.randn(3, 1, requires_grad=True)
w = train(w, torch.randn(8, 3))
