# verified: out_of_place
# says: made anew for each backward call
# A filter writes each of its steps into a row of a buffer that it keeps: each signal needs rows of its own.
# %%
import torch
from torch import nn

torch.manual_seed(0)


class Filter(nn.Module):
    def __init__(self, width, steps):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width))
        self.register_buffer("rows", torch.zeros(steps, width))

    def forward(self, signal):
        for step in range(len(signal)):
            torch.mul(signal[step], self.gain, out=self.rows[step])
        return self.rows.cumsum(0)


smooth = Filter(3, 4)
optimizer = torch.optim.Adam(smooth.parameters())
# %%
for signal in torch.randn(3, 4, 3):
    optimizer.zero_grad()
    (smooth(signal) - signal).abs().sum().backward()
    optimizer.step()
