# verified:
# never says: no gradient in any step
# %%
import torch
torch.manual_seed(0)
a, b = torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)
frozen = torch.ones(1)
opt = torch.optim.SGD([a, b, frozen], lr=0.1)
history = []
# %%
for _ in range(3):
    opt.zero_grad()
    loss = (a * torch.randn(8) + b - frozen).pow(2).mean()
    loss.backward()
    opt.step()
    history.append((a.item(), b.detach().clone(), float(frozen)))
with torch.no_grad():
    best = a * 2 + b
