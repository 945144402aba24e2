# title: A step that raises is caught, the next iteration goes on
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

net = nn.Linear(3, 1)

class Picky(torch.optim.SGD):
    def step(self, closure=None):
        if any(p.grad.isnan().any() for group in self.param_groups for p in group["params"]):
            raise RuntimeError("nan in a gradient")
        return super().step(closure)

optimizer, skipped = Picky(net.parameters(), 0.1), 0
# %%
for i, x in enumerate(torch.randn(5, 4, 3)):
    if i == 1:
        x[0, 0] = float("nan")
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    try:
        optimizer.step()
    except RuntimeError:
        skipped += 1
