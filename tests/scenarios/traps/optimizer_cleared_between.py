# verified: recompute_in_loop
# %%
import torch
torch.manual_seed(0)
d = torch.nn.Linear(4, 1); g = torch.nn.Linear(2, 4)
od = torch.optim.SGD(d.parameters(), lr=0.1); og = torch.optim.SGD(g.parameters(), lr=0.1)
# %%
for i in range(2):
    fake = g(torch.randn(3, 2))
    score = d(fake)
    ld = score.pow(2).mean()
    ld.backward(retain_graph=True)
    od.step()
    od.zero_grad()
    lg = (1 - score).mean()
    lg.backward()
    og.step()
    og.zero_grad()
