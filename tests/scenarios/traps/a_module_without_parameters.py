# verified:
# says: `net` has no parameter that requires grad. | nn.Parameter
# never says: frozen
# %%
import torch, torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = [torch.randn(3, 1) for _ in range(2)]
    def forward(self, x):
        return sum(x @ w for w in self.weights)
net = Net()
# %%
loss = net(torch.randn(4, 3)).mean()
loss.backward()
