# title: Through numpy and back
# kind: element0
# truth: measured.json
# %%
import numpy as np
import torch
from torch import nn
net = nn.Linear(3, 1)
# %%
arr = np.log1p(np.exp(net(torch.randn(4, 3)).detach().numpy()))
loss = torch.from_numpy(arr).mean()
# %%
loss.backward()
