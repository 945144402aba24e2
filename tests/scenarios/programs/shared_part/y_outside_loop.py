# title: y = t @ a built once, reused in every iteration
# kind: second_backward
# source: seed 002 (discuss.pytorch.org: Backpropagation - Graph is reused while it shouldn't)
# truth: measured.json
# %%
import torch
mse = torch.nn.MSELoss()
x = torch.tensor([1., 0.], dtype=torch.float64)
t = torch.eye(2, dtype=torch.float64, requires_grad=True)
a = torch.ones(2, dtype=torch.float64, requires_grad=True)
y = t @ a
# %%
for it in range(2):
    x_out = t @ (x + y)
    loss = mse(x_out, x)
    loss.backward()
