# verified:
# says: Let `x` require grad before the loss is computed
# never says: requires_grad_(True)
# %%
import torch, torch.nn as nn, torch.nn.functional as F
net = nn.Linear(4, 2)
for p in net.parameters():
    p.requires_grad_(False)
x = torch.randn(1, 4)
# %%
loss = F.cross_entropy(net(x), torch.tensor([1]))
loss.backward()
adversarial = x + 0.1 * x.grad.sign()
