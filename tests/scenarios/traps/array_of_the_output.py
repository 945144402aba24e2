# verified:
# %%
import torch
import torch.nn as nn
net = nn.Linear(3, 1)
# %%
out = net(torch.ones(2, 3)).detach().numpy()
loss = torch.from_numpy(out**2).mean()
loss.backward()
