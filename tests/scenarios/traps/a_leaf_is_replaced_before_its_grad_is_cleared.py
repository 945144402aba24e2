# verified: under_no_grad
# says: `w = w - 0.1 * w.grad` made a new tensor in In[2], line 4: it is no leaf.
# never: retain_grad
# %%
import torch
torch.manual_seed(0)
w = torch.zeros(1, requires_grad=True); b = torch.zeros(1, requires_grad=True)
x = torch.linspace(0, 1, 20); y = 3 * x + 1
# %%
for i in range(3):
    loss = (w * x + b - y).square().mean()
    loss.backward()
    w = w - 0.1 * w.grad
    b = b - 0.1 * b.grad
    w.grad.zero_()
    b.grad.zero_()
