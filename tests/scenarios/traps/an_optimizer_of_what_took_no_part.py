# verified:
# says: took no part in the backward before it: that reached `disc.bias` and `disc.weight`.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
gen, disc = nn.Linear(2, 2), nn.Linear(2, 1)
og, od = torch.optim.SGD(gen.parameters(), lr=0.1), torch.optim.SGD(disc.parameters(), lr=0.1)
# %%
for i in range(3):
    loss = disc(gen(torch.randn(4, 2)).detach()).mean()
    od.zero_grad(); loss.backward(); od.step()
    og.step()
