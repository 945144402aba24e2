# title: Gradient accumulation over micro-batches
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(8, 2))
opt = torch.optim.AdamW(net.parameters(), 1e-3)
# %%
running = 0.0
for i in range(8):
    loss = nn.functional.cross_entropy(net(torch.randn(3, 4)), torch.randint(2, (3,))) / 4
    loss.backward()
    running += loss.item()
    if (i + 1) % 4 == 0:
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
