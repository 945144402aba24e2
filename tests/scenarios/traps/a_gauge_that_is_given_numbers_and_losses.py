# verified: detach
# says: Write `self.total += (reading.detach() if hasattr(reading, … | (In[1], line 10)
# %%
import torch, torch.nn as nn
torch.manual_seed(0)


class Gauge:
    def __init__(self):
        self.total, self.seen = 0, 0

    def read(self, reading, times=1):
        self.total += reading * times
        self.seen += times

    def mean(self):
        return float(self.total) / self.seen


def report(gauges, readings, times):
    for name, reading in readings.items():
        gauges[name].read(reading, times)


net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
gauges = {"misfit": Gauge(), "spread": Gauge(), "within": Gauge()}
# %%
for day in range(5):
    flow = net(torch.randn(6, 4))
    misfit, spread = flow.pow(2).mean(), flow.std()
    opt.zero_grad()
    (misfit + 0.1 * spread).backward()
    opt.step()
    report(gauges, {"misfit": misfit, "spread": spread, "within": (flow.abs() < 1).float().mean().item()}, len(flow))
