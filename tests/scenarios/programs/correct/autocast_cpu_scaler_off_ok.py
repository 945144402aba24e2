# title: Mixed precision on the CPU with the scaler switched off
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(4 * 36, 2))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", enabled=False)
# %%
for step in range(3):
    images, labels = torch.randn(4, 1, 8, 8), torch.randint(2, (4,))
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(net(images), labels)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
