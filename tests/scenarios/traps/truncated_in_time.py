# verified: del_variable
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
cell = nn.RNNCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), 0.1)
h = torch.zeros(1, 3)
hist = [(None, h)]
for t in range(6):
    s = hist[-1][1].detach(); s.requires_grad_()
    n = cell(torch.randn(1, 2), s)
    hist.append((s, n))
    if (t + 1) % 2 == 0:
        loss = n.pow(2).sum()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        for i in range(1):
            if hist[-i - 2][0] is None: break
            g = hist[-i - 1][0].grad
            hist[-i - 2][1].backward(g, retain_graph=True)
        opt.step()
