# verified:
# says: `code.grad` was the same tensor at 5 of these steps | Clear them in each pass: `code.grad = None`.
# %%
import torch
from torch import nn
torch.manual_seed(0)
decoder = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 6))
opt = torch.optim.SGD(decoder.parameters(), lr=0.05)
spectra = torch.rand(12, 6)


def infer(decoder, opt, batch, steps=5):
    """The code of each spectrum, found by a few steps of its own; dead channels keep theirs."""
    code = torch.zeros(len(batch), 3, requires_grad=True)
    alive = batch.mean(1) > 0.1
    for _ in range(steps):
        error = (decoder(code) - batch).pow(2).mean()
        opt.zero_grad()
        error.backward()
        slope = code.grad.detach()
        move = -0.5 * slope
        code.data[alive] += move[alive]
        code.data[alive] = code.data[alive].clamp(-3, 3)
    return code.detach()


# %%
for epoch in range(3):
    for batch in spectra.split(4):
        code = infer(decoder, opt, batch)
        opt.zero_grad()
        (decoder(code) - batch).pow(2).mean().backward()
        opt.step()
