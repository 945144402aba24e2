# verified:
# never says: wrong | image
# %%
import torch, torch.nn as nn
conv = nn.Conv2d(1, 2, 3).requires_grad_(False)
image = nn.Parameter(torch.rand(1, 1, 6, 6))
opt = torch.optim.Adam([image], lr=0.1)
# %%
for step in range(2):
    loss = conv(image).pow(2).mean()
    image.data.clamp_(0.2, 0.8)
    opt.zero_grad()
    loss.backward()
    opt.step()
