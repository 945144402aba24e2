# title: Hidden state carried on with retain_graph=True: each backward is longer
# kind: leak
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
A = torch.randn(3, 3, requires_grad=True)
state = torch.zeros(3)
# %%
for t in range(6):
    state = torch.tanh(A @ state + torch.randn(3))
    state.sum().backward(retain_graph=True)
