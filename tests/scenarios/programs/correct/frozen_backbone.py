# title: A frozen backbone and a trained head
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(4, 6), nn.ReLU())
for p in backbone.parameters():
    p.requires_grad = False
head = nn.Linear(6, 2)
opt = torch.optim.SGD(head.parameters(), 0.1)
feats = backbone(torch.randn(8, 4))
# %%
for _ in range(3):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(head(feats), torch.randint(2, (8,)))
    loss.backward()
    opt.step()
# %%
accuracy = (head(feats).argmax(1) == 0).float().mean()
