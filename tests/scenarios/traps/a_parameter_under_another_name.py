# verified:
# never says: penalty
# %%
import torch, torch.nn as nn
net = nn.Linear(1, 1)
penalty = net.bias
# %%
penalty.backward()
