# title: Validation without no_grad builds graphs and drops them
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
model, crit = nn.Linear(3, 1), nn.MSELoss()
opt = torch.optim.SGD(model.parameters(), 0.1)
def evaluate(batches):
    return sum(crit(model(x), y).item() for x, y in batches) / len(batches)
# %%
data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]
curve = []
for epoch in range(4):
    for x, y in data:
        opt.zero_grad()
        crit(model(x), y).backward()
        opt.step()
    curve.append(evaluate(data))
# %%
best = min(curve)
