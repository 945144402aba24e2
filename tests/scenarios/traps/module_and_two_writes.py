# verified: out_of_place clone_before_inplace
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
c1, c2, bn = nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
r = nn.ReLU(inplace=True)
x = torch.randn(1, 2, 4, 4)
h = r(bn(c1(x)))
y = c2(h)
y += h
h2 = r(y)
h2 += h
h *= 0.5
l = h2.sum()
# %%
l.backward()
