# title: A progress bar holds the last loss only
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

class Bar:
    def __init__(self, items):
        self.items, self.shown = items, {}

    def __iter__(self):
        for item in self.items:
            yield item

    def set_postfix(self, **shown):
        self.shown.update(shown)

net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
# %%
for epoch in range(3):
    bar = Bar(torch.randn(4, 5, 3))
    running = 0.0
    for x in bar:
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += float(loss)
        bar.set_postfix(loss=loss, running=running)
