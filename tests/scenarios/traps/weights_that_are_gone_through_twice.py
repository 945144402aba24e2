# verified:
# says: `trainable` is used up when | [p for p in net.parameters() if p.requires_grad]
# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2))
net[0].bias.requires_grad_(False)
trainable = (p for p in net.parameters() if p.requires_grad)
opt = torch.optim.SGD(trainable, lr=0.2, momentum=0.9)
x, y = torch.randn(40, 6), torch.randint(2, (40,))
# %%
for epoch in range(4):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(trainable, 0.05)
    opt.step()
