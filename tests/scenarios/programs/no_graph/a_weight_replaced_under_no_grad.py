# title: A step by hand makes a new tensor of the weight
# kind: element0
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
x = torch.randn(5, 3)
for i in range(2):
    loss = (x @ w).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w = w - 0.1 * w.grad
