# %%
N = 12
import torch
import torch.nn as nn
import torch.nn.functional as F

environments = [(torch.randn(6, 3), torch.randn(6, 1)) for _ in range(4)]
prompt = torch.zeros(6, 3, requires_grad=True)
optimizer = torch.optim.Adam([prompt], lr=0.1)
# %%
for step in range(N):
    head = nn.Linear(3, 1)
    distance = torch.zeros(())
    for x, y in environments:
        target = torch.autograd.grad(F.mse_loss(head(x), y), list(head.parameters()))
        made = torch.autograd.grad(F.mse_loss(head(x + prompt), y), list(head.parameters()), create_graph=True)
        distance = distance + sum((a - b).pow(2).sum() for a, b in zip(made, target))
    optimizer.zero_grad()
    distance.backward()
    optimizer.step()
