# title: Inference under no_grad between training steps
# kind: ok
# source: class of https://github.com/Lightning-AI/pytorch-lightning/issues/19910
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
# %%
for step in range(2):
    net(torch.randn(2, 3)).sum().backward()
    with torch.no_grad():
        pred = net(torch.randn(2, 3))
    with torch.inference_mode():
        pred2 = net(torch.randn(2, 3))
