# title: Each output of a recurrent chain gets a backward of its own
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
layer = torch.nn.Linear(3, 3)
h = torch.zeros(1, 3)
outs = []
for t in range(3):
    h = torch.tanh(layer(h) + t)
    outs.append(h)
# %%
total = 0
for o in outs:
    o.sum().backward()
    total += o.sum().item()
