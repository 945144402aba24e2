# title: A table computed from a parameter in __init__, the step in another cell
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Pos(nn.Module):
    def __init__(self):
        super().__init__()
        self.freq = nn.Parameter(torch.ones(3))
        self.table = torch.sin(torch.arange(4.0)[:, None] * self.freq)
        self.mix = nn.Linear(3, 3)
    def forward(self, x):
        return self.mix(x + self.table)
# %%
def step(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
# %%
model = Pos()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for x in torch.randn(3, 4, 3):
    step(model, optimizer, x)
