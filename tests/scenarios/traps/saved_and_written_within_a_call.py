# verified: out_of_place
# never says: h = h.clone()
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net, out = nn.Linear(3, 4), nn.Linear(4, 1)
# %%
def rescale(h):
    h -= h.mean(-1, keepdim=True)
    h /= h.std(-1, keepdim=True) + 1e-5
    return h
# %%
def forward(x):
    h = torch.sigmoid(net(x))
    return out(rescale(h))
# %%
for step in range(2):
    forward(torch.randn(2, 3)).sum().backward()
