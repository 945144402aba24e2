# verified: detach
# never says: .clear()
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 1); opt = torch.optim.SGD(net.parameters(), lr=0.1)
losses = []
# %%
for x in torch.randn(5, 4, 3):
    best = min(losses) if losses else torch.tensor(0.0)
    losses.append(net(x).pow(2).mean())
    total = torch.stack(losses).mean() + best
    opt.zero_grad(); total.backward(); opt.step()
