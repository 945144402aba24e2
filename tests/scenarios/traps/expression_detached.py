# verified: detach
# %%
import torch
import torch.nn as nn
net = nn.Linear(3, 3)
# %%
out = net(torch.ones(2, 3)).detach()
nn.functional.mse_loss(out, torch.zeros(2, 3)).backward()
