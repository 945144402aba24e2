# title: Inference tensor used in a later autograd op
# kind: nasty
# source: https://pytorch.org/docs/stable/notes/autograd.html#inference-mode
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
with torch.inference_mode():
    feats = torch.randn(4, 3) * 2
# %%
loss = net(feats).sum()
loss.backward()
