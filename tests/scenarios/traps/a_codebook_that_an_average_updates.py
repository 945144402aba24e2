# verified:
# never says: no gradient in any step
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(3, 2)
        self.codes = nn.Parameter(torch.randn(4, 2))
    def forward(self, x):
        h = self.enc(x)
        near = torch.cdist(h, self.codes).argmin(1)
        with torch.no_grad():
            self.codes.lerp_(self.codes + 0.1, 0.01)
        return h + (self.codes[near] - h).detach()
model = Quantizer()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
for _ in range(3):
    opt.zero_grad()
    model(torch.randn(4, 3)).pow(2).sum().backward()
    opt.step()
