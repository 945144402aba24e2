# holder: trainer\.recent
# iterations: N
# %%
N = 12
from collections import deque
import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.net, self.recent = nn.Linear(3, 2), deque()
        self.opt = torch.optim.AdamW(self.net.parameters())

    def step(self, x):
        out = self.net(x)
        self.opt.zero_grad()
        out.pow(2).mean().backward()
        self.opt.step()
        self.recent.append(out)


trainer = Trainer()
# %%
for i in range(N):
    trainer.step(torch.randn(4, 3))
