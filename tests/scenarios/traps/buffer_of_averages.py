# verified: detach
# says: Then `net.enc.bias` and `net.enc.weight` get no gradient from earlier iterations.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(3, 4); self.dec = nn.Linear(4, 3)
        self.register_buffer("ema", torch.zeros(4))
    def forward(self, x):
        h = self.enc(x)
        self.ema = 0.9 * self.ema + 0.1 * h.mean(0)
        return self.dec(h - self.ema)
net = Net(); opt = torch.optim.Adam(net.parameters())
# %%
for step in range(3):
    x = torch.randn(5, 3)
    loss = (net(x) - x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
