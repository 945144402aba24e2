# holder: h
# iterations: N
# %%
N = 8
import torch

w = torch.eye(3, requires_grad=True)
h = torch.zeros(3)
# %%
for t in range(N):
    h = torch.tanh(h @ w + 1.0)
    loss = h.pow(2).sum()
    loss.backward(retain_graph=True)
