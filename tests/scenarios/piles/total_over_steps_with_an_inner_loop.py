# holder: seen
# %%
N = 20
import torch

w = torch.ones(10, requires_grad=True)
seen = []
# %%
for _ in range(N):
    total = torch.zeros(())
    for part in torch.randn(4, 10):
        loss = (w * part).exp().sum()
        loss.backward(retain_graph=True)
        total = total + loss
    w.grad = None
    total.backward()
    seen.append(total)
