# verified:
# says: still multiplied by the scale of `self.scaler` | self.scaler.unscale_(self.opt)
# %%
import torch
from torch import nn


class Fitter:
    def __init__(self, net, limit):
        self.net, self.limit = net, limit
        self.opt = torch.optim.Adam(net.parameters(), lr=1e-2)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def fit(self, pieces):
        for number, (x, y) in enumerate(pieces, 1):
            with torch.autocast("cpu", torch.bfloat16):
                loss = nn.functional.smooth_l1_loss(self.net(x).float(), y)
            self.scaler.scale(loss / 2).backward()
            if number % 2 == 0:
                nn.utils.clip_grad_norm_(self.net.parameters(), self.limit)
                self.scaler.step(self.opt)
                self.scaler.update()
                self.opt.zero_grad()


torch.manual_seed(0)
fitter = Fitter(nn.Sequential(nn.Linear(5, 8), nn.SiLU(), nn.Linear(8, 1)), 0.5)
pieces = [(torch.randn(16, 5), torch.randn(16, 1)) for _ in range(8)]
# %%
fitter.fit(pieces)
