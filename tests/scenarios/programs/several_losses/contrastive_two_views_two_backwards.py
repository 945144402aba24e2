# title: Two losses on one shared encoder, each with a backward of its own
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
import torch.nn.functional as F
encoder = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
projector = nn.Linear(4, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *projector.parameters()])
x = torch.randn(5, 6)
# %%
def info_nce(a, b, temperature=0.5):
    logits = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T / temperature
    return F.cross_entropy(logits, torch.arange(len(a)))
# %%
for step in range(3):
    first, second = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    z1, z2 = encoder(first), encoder(second)
    forward_loss = info_nce(projector(z1), z2)
    backward_loss = info_nce(projector(z2), z1)
    optimizer.zero_grad()
    forward_loss.backward()
    backward_loss.backward()
    optimizer.step()
