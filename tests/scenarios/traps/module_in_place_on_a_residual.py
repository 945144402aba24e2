# verified: out_of_place clone_before_inplace
# says: modified `y` in `net.relu`, a `ReLU` with `inplace=True`
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Res(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.relu = nn.ReLU(inplace=True)
    def forward(self, x):
        y = self.a(x)
        z = y * self.b(x).sigmoid()
        return self.relu(y) + z
net = Res()
loss = net(torch.randn(2, 3)).sum()
# %%
loss.backward()
