# verified: recompute_in_loop
# says: Make `response = torch.exp(self.log_gain)` (In[1], line 9) and `self.beam
# says: whoever reads `self.beam` gets it with a new graph.
# never says: .detach()
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Antenna(nn.Module):
    """The beam is described once, and read by both of the following methods."""
    def __init__(self, n):
        super().__init__()
        self.log_gain = nn.Parameter(torch.zeros(n))
        response = torch.exp(self.log_gain)
        self.beam = Beam(response)

    def received(self, x):
        return x * self.beam.response

    def power(self):
        return self.beam.response.pow(2).sum()
class Beam:
    def __init__(self, response):
        self.response = response
antenna = Antenna(3)
opt = torch.optim.SGD(antenna.parameters(), 0.05)
signal = torch.randn(8, 3)
# %%
for step in range(4):
    loss = (antenna.received(signal) - 2 * signal).pow(2).mean() + 0.01 * antenna.power()
    opt.zero_grad()
    loss.backward()
    opt.step()
