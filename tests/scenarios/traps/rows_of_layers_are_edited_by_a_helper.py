# verified: under_no_grad
# says: `self.bands[at].mix.weight` is a leaf that requires grad | in lines 16 and 17 | No gradient flows back into what is written
# never says: .clone()
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Band(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 3)
class Equalizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.bands = nn.ModuleList(Band() for _ in range(3))
    def forward(self, x):
        return sum(band.mix(x) for band in self.bands)
    def mute(self, pairs, tone):
        for at, row in pairs:
            self.bands[at].mix.weight[row] -= tone * 0.5
            self.bands[at].mix.weight[row, :2].mul_(0.1)
# %%
model = Equalizer()
step = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    step.zero_grad()
    model(torch.randn(6, 4)).square().mean().backward()
    step.step()
# %%
tone = model.bands[0].mix.weight.mean(0)
model.mute([(0, 1), (2, 0)], tone)
# %%
assert all(one.is_leaf for one in model.parameters())
print(model(torch.ones(1, 4)).sum().item())
