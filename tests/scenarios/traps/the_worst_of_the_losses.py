# verified: retain_graph_earlier_call
# says: ② starts inside that graph.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
losses = []
for x in torch.randn(12, 2, 3):
    l = net(x).abs().mean()
    losses.append(l)
mean = torch.stack(losses).mean()
mean.backward()
# %%
worst = max(losses)
worst.backward()
