# title: retain_graph keeps the part above y; del y frees it after the loop
# kind: ok
# source: seed 002 (discuss.pytorch.org: Backpropagation - Graph is reused while it shouldn't)
# truth: measured.json
# %%
import torch, weakref
x = torch.tensor([1., 0.], dtype=torch.float64)
t = torch.eye(2, dtype=torch.float64, requires_grad=True)
a = torch.ones(2, dtype=torch.float64, requires_grad=True)
y = t @ a
top = weakref.ref(y)
# %%
for it in range(3):
    x_out = t @ (x + y)
    loss = torch.nn.functional.mse_loss(x_out, x)
    loss.backward(retain_graph=True)
# %%
del y, x_out, loss
alive = top() is not None
