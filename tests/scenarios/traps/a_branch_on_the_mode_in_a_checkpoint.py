# verified:
# says: the 2nd was [2, 6], now [2, 3] | a branch that asks for one
# never says: which outlives the first run
# %%
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
wide = nn.Linear(3, 6)
def features(x):
    h = wide(x) if net.training else net(x)
    return h * h
# %%
def train_step(x):
    y = checkpoint(features, x, use_reentrant=False).sum()
    net.eval()
    y.backward()
train_step(torch.ones(2, 3))
