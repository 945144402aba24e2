# verified:
# says: Write `torch.stack(losses)` in place of `torch.tensor`
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Linear(3, 2)
# %%
def hardest(embedded):
    losses = []
    for one in embedded:
        losses.append(one.pow(2).sum().relu())
    return torch.mean(torch.tensor(losses))
loss = hardest(net(torch.randn(4, 3)))
loss.backward()
