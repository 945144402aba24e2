# title: Truncated BPTT in a while loop, state detached at each chunk
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
lstm, out = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 1)
opt = torch.optim.Adam([*lstm.parameters(), *out.parameters()], 1e-2)
series = torch.randn(2, 20, 3)
# %%
state, at = None, 0
while at < series.shape[1]:
    chunk = series[:, at : at + 5]
    y, state = lstm(chunk, state)
    state = tuple(s.detach() for s in state)
    cost = out(y).pow(2).mean()
    opt.zero_grad()
    cost.backward()
    opt.step()
    at += 5
