# verified:
# says: `optim.zero_grad()` (In[2], line 4), called by `rate = set_rate(rmsprop, epoch)`, clears the gradients
# %%
import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
rmsprop = torch.optim.RMSprop(net.parameters(), lr=0.1)
x = torch.randn(3, 4)
# %%
def set_rate(optim, epoch):
    for group in optim.param_groups:
        group["lr"] = 0.1 / (1 + epoch)
    optim.zero_grad()
    return 0.1 / (1 + epoch)


for epoch in range(4):
    loss = net(x).pow(2).mean()
    loss.backward()
    rate = set_rate(rmsprop, epoch)
    rmsprop.step()
