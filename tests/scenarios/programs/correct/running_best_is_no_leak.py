# title: A running best and an exponential average without graph
# kind: ok
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
best, ema = None, torch.zeros(())
# %%
for i in range(6):
    loss = (w * torch.randn(3)).pow(2).sum()
    loss.backward()
    if best is None or loss < best:
        best = loss
    ema = 0.9 * ema + 0.1 * loss.detach()
    with torch.no_grad():
        w.sub_(w.grad, alpha=0.01)
        w.grad.zero_()
