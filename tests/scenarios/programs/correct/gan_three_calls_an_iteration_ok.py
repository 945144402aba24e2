# title: Three backward calls an iteration, their tensors still named at the end
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
G, D = nn.Linear(2, 2), nn.Linear(2, 1)
og, od = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)
# %%
for i in range(4):
    od.zero_grad()
    real_loss = D(torch.randn(3, 2)).mean()
    real_loss.backward()
    fake = G(torch.randn(3, 2))
    fake_loss = -D(fake.detach()).mean()
    fake_loss.backward()
    od.step()
    og.zero_grad()
    gen_loss = D(fake).mean()
    gen_loss.backward()
    og.step()
