# verified: detach
# never says: .add_(torch.tanh(net(x)).detach())
# %%
import torch, torch.nn as nn
net, head = nn.Linear(3, 4), nn.Linear(4, 1)
state = torch.zeros(2, 4)
# %%
for x in torch.randn(4, 2, 3):
    state.mul_(0.9).add_(torch.tanh(net(x)))
    loss = head(state).pow(2).mean()
    loss.backward()
