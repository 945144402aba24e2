# title: After a step that raised, the loss is run once more
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

net = nn.Linear(3, 1)

class Fragile(torch.optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("no step today")

optimizer = Fragile(net.parameters(), 0.1)
x = torch.randn(4, 3)
# %%
try:
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
except RuntimeError:
    features = net(x).exp()
score = features.mean()
score.backward()
# %%
features.sum().backward()
