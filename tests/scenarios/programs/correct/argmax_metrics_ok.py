# title: argmax, numpy and item for metrics only
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
seen = []
# %%
for i in range(4):
    x, y = torch.randn(6, 3), torch.randint(3, (6,))
    logits = net(x)
    loss = nn.functional.cross_entropy(logits, y)
    opt.zero_grad(); loss.backward(); opt.step()
    seen.append((logits.argmax(1) == y).float().mean().item())
    pred = logits.detach().numpy().tolist()
