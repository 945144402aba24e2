# verified:
# says: Write `loss`: its value, the tensor itself
# never says: .item()[
# %%
import torch
net = torch.nn.Linear(2, 1)
x = torch.ones(4, 2)
# %%
loss = net(x).mean()
loss[0].backward()
