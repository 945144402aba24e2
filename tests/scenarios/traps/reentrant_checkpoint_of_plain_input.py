# verified:
# says: runs code that is not recorded | Pass `use_reentrant=False`
# never says: some of it must require grad | no parameter | Nothing that
# %%
import torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint
class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(3, 3).requires_grad_(False)
        self.down = nn.Linear(3, 1)
    def forward(self, x):
        return self.base(x) + self.down(x)
net = nn.ModuleList(Adapter() for _ in range(2))
def run(x):
    for layer in net:
        x = checkpoint(layer, x, use_reentrant=True)
    return x
# %%
loss = run(torch.randn(2, 3)).mean()
loss.backward()
