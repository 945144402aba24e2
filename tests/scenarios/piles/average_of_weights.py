# holder: ema\.shadow
# iterations: N
# %%
N = 18
import torch
from torch import nn


class EMA:
    def __init__(self, net):
        self.shadow = {n: p.detach().clone() for n, p in net.named_parameters()}

    def update(self, net):
        for n, p in net.named_parameters():
            self.shadow[n] = 0.99 * self.shadow[n] + 0.01 * p


net = nn.Linear(6, 6)
ema, opt = EMA(net), torch.optim.SGD(net.parameters(), 0.1)
# %%
for it in range(N):
    loss = net(torch.randn(3, 6)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    ema.update(net)
