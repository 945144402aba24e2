# verified:
# says: `band.low` and `band.high` | without a graph
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Band(nn.Module):
    def __init__(self):
        super().__init__()
        self.low, self.high = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(0.9))
        self.gain = nn.Parameter(torch.ones(2))
    def edges(self):
        return torch.tensor([self.low, self.high])
    def forward(self, x):
        return x * self.edges() * self.gain
band = Band()
opt = torch.optim.SGD(band.parameters(), lr=0.1)
# %%
for _ in range(3):
    loss = band(torch.randn(5, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
