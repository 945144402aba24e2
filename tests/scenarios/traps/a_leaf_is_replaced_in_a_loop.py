# verified: under_no_grad
# says: made a new tensor in the pass before: it is no leaf.
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, 1, requires_grad=True)
x = torch.randn(10, 3); y = x @ torch.tensor([[1.], [2.], [3.]])
# %%
for i in range(3):
    loss = (x @ w - y).square().mean()
    loss.backward()
    w = w - 0.1 * w.grad
