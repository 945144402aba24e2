# verified:
# says: Write `(criterion(net(x), y) + net.weight.abs().mean()).item()`
# %%
import torch
net, criterion = torch.nn.Linear(2, 1), torch.nn.MSELoss()
x, y = torch.ones(4, 2), torch.ones(4, 1)
# %%
print("loss", (criterion(net(x), y) + net.weight.abs().mean()).data[0])
