# verified:
# says: `model.gate.weight` | runs under `torch.no_grad()`
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.gate = nn.Linear(3, 3)
    def forward(self, x):
        with torch.no_grad():
            g = torch.sigmoid(self.gate(x))
        return self.body(x) * g
model = Gated()
opt = torch.optim.Adam(model.parameters())
# %%
def fit(steps):
    for _ in range(steps):
        opt.zero_grad()
        model(torch.randn(4, 3)).pow(2).sum().backward()
        opt.step()
fit(3)
