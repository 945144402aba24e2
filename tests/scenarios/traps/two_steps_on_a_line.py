# verified: recompute_in_loop
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
a, b = nn.Linear(3, 3), nn.Linear(3, 3)
oa, ob = torch.optim.Adam(a.parameters()), torch.optim.Adam(b.parameters())
x = torch.randn(4, 3)
# %%
z = a(x)
la = b(z).pow(2).mean()
lb = b(z).abs().mean()
la.backward(retain_graph=True)
oa.step(); ob.step()
lb.backward()
ob.step()
