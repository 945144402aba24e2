# title: A state is added to in place by what was made of it
# kind: inplace
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
cell = torch.nn.Linear(3, 3)
h = torch.zeros(3)
outs = []
for t in range(3):
    h += torch.tanh(cell(h))
    outs.append(h)
torch.stack(outs).sum().backward()
