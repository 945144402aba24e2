# verified: out_of_place
# says: modified a tensor in `net[1].last`, a `LeakyReLU` with `inplace=True`
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(n, n, 3, padding=1), nn.BatchNorm2d(n), nn.ReLU(inplace=True), nn.Conv2d(n, n, 3, padding=1))
        self.last = nn.LeakyReLU(0.1, True)
    def forward(self, x):
        return self.last(self.body(x).sigmoid()) + x
net = nn.Sequential(Block(2), Block(2), nn.Flatten(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for i in range(2):
    loss = net(torch.randn(4, 2, 4, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
