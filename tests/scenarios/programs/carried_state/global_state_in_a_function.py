# title: A function that loops carries its state in a global
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
cell = torch.nn.RNNCell(3, 4)
state = torch.zeros(2, 4)
# %%
def fit(steps):
    global state
    for t in range(steps):
        state = cell(torch.randn(2, 3), state)
        loss = state.pow(2).mean()
        loss.backward()

fit(3)
