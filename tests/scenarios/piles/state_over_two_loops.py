# holder: state
# %%
N = 30
import torch

cell = torch.nn.RNNCell(2, 3)
state = torch.zeros(1, 3)
# %%
for _ in range(N):
    total = 0
    for x in torch.randn(3, 1, 2):
        state = cell(x, state)
        state.sum().backward(retain_graph=True)
        total = total + state.pow(2).sum()
    total.backward(retain_graph=True)
