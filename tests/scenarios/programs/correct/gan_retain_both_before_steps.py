# title: Both backwards over one fake, then both steps: retain_graph is needed and enough
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
g, d = nn.Linear(2, 3), nn.Linear(3, 1)
og, od = torch.optim.SGD(g.parameters(), 0.1), torch.optim.SGD(d.parameters(), 0.1)
# %%
for step in range(3):
    fake = g(torch.randn(4, 2)).tanh()
    score = d(fake)
    d_loss = nn.functional.softplus(score).mean()
    g_loss = nn.functional.softplus(-score).mean()
    od.zero_grad()
    d_loss.backward(retain_graph=True)
    og.zero_grad()
    g_loss.backward()
    od.step()
    og.step()
