# verified:
# says: is a constant: no step goes by it | `open_gates = (scores > 0).float()` | a comparison has no derivative
# never says: requires_grad
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Gated(nn.Module):
    def __init__(self, bands):
        super().__init__()
        self.score, self.mix = nn.Linear(bands, bands), nn.Linear(bands, 1)
    def forward(self, spectrum):
        scores = self.score(spectrum)
        return self.mix(torch.sigmoid(scores) * spectrum), scores
class BandCost:
    def __init__(self, price=0.2):
        self.price = price
    def of(self, scores):
        open_gates = (scores > 0).float()
        return self.price * open_gates.sum(dim=1).mean()
# %%
spectra = torch.rand(24, 6)
yields = spectra[:, :1] * 2
net, cost = Gated(6), BandCost()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    predicted, scores = net(spectra)
    bands = cost.of(scores)
    loss = nn.functional.mse_loss(predicted, yields) + bands
    opt.zero_grad()
    loss.backward()
    opt.step()
