# title: A forward function decorated with torch.no_grad()
# kind: element0
# truth: measured.json
# %%
import torch
from torch import nn
net = nn.Linear(3, 1)
@torch.no_grad()
def predict(x):
    return net(x)
# %%
pred = predict(torch.randn(4, 3))
loss = pred.square().mean()
# %%
loss.backward()
