# verified: out_of_place
# says: modified a tensor in `net[2]`, a `ReLU` with `inplace=True`, after SigmoidBackward0
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.ReLU(inplace=True), nn.Linear(3, 1))
out = net(torch.randn(2, 3)).sum()
# %%
out.backward()
