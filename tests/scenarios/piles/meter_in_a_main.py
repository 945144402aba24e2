# holder: meter\.total
# %%
N = 24
import torch
from torch import nn


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total = self.total + value * n
        self.count += n


def main():
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    meter = Meter()
    for i in range(N):
        loss = net(torch.randn(4, 3)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(loss, 4)
    return float(meter.total) / meter.count


# %%
main()
