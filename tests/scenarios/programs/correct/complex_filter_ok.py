# title: A filter is learnt in the frequency domain
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

signal, wanted = torch.randn(32), torch.randn(32)
filter_ = nn.Parameter(torch.ones(17, dtype=torch.complex64))
optimizer = torch.optim.Adam([filter_], 0.05)
# %%
for step in range(5):
    spectrum = torch.fft.rfft(signal) * filter_
    spectrum[0] = 0
    output = torch.fft.irfft(spectrum, n=32)
    loss = (output - wanted).square().mean() + 1e-3 * torch.view_as_real(filter_).abs().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
