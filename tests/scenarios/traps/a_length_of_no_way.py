# verified:
# says: Parameters hold nan. | `graphwidget.find_nan(energy)`
# never says: detach
# %%
import torch
from torch import nn
torch.manual_seed(0)
springs = nn.Parameter(torch.rand(5))
places = nn.Parameter(torch.zeros(6, 2))
with torch.no_grad():
    places[:5, 0] = torch.arange(5.0)
    places[5] = places[4]
optimizer = torch.optim.Adam([springs, places], lr=0.01)
# %%
for step in range(6):
    ways = places[1:] - places[:-1]
    lengths = (ways * ways).sum(1) ** 0.5
    energy = (springs.abs() * (lengths - 0.7) ** 2).sum()
    optimizer.zero_grad()
    energy.backward()
    optimizer.step()
