# title: A function appends its output to a global list
# kind: leak
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net, seen = nn.Linear(2, 2), []
def run(epochs):
    for e in range(epochs):
        for x in torch.randn(2, 3, 2):
            y = net(x).tanh()
            seen.append(y)
            y.mean().backward()
            net.zero_grad()
# %%
run(3)
