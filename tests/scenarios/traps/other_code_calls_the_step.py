# verified: detach
# says: `self.state = self.state.detach()` before In[1], line 21
# %%
import torch
from torch import nn
torch.manual_seed(0)
code = """
import torch
class Trainer:
    def fit(self, module, steps):
        opt = torch.optim.SGD(module.parameters(), lr=0.1)
        for n in range(steps):
            loss = module.training_step(torch.randn(2, 4), n)
            opt.zero_grad()
            loss.backward()
            opt.step()
"""
exec(compile(code, "frame.py", "exec"))
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head, self.state = nn.GRUCell(4, 8), nn.Linear(8, 1), torch.zeros(2, 8)
    def training_step(self, batch, n):
        self.state = self.cell(batch, self.state)
        return self.head(self.state).pow(2).mean()
tagger = Tagger()
# %%
Trainer().fit(tagger, 3)
