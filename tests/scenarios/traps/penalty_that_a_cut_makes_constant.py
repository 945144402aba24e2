# verified: recompute_in_loop
# says: each pass has its own graph then
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Trainer:
    def __init__(self, net):
        self.net, self.opt = net, torch.optim.Adam(net.parameters(), lr=1e-2)
        self.penalty = 1e-3 * sum((p ** 2).sum() for p in net.parameters())
    def step(self):
        loss = self.net(torch.rand(32, 1)).pow(2).mean() + self.penalty
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def fit(self):
        for _ in range(3):
            self.step()
# %%
trainer = Trainer(nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)))
trainer.fit()
