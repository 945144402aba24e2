# holder: running
# iterations: 20
# %%
N = 100
import torch

w = torch.ones(5, requires_grad=True)
running = 0.0
# %%
for step in range(N):
    if step % 40 == 0:
        running = 0.0
    loss = (w * torch.randn(5)).exp().mean()
    loss.backward()
    running += loss
