# title: The same with t @ a inside the loop
# kind: ok
# source: seed 002 (discuss.pytorch.org: Backpropagation - Graph is reused while it shouldn't)
# truth: measured.json
# %%
import torch
x = torch.tensor([1., 0.], dtype=torch.float64)
t = torch.eye(2, dtype=torch.float64, requires_grad=True)
a = torch.ones(2, dtype=torch.float64, requires_grad=True)
# %%
for it in range(3):
    y = t @ a
    loss = torch.nn.functional.mse_loss(t @ (x + y), x)
    loss.backward()
