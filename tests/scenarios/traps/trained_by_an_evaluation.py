# verified:
# says: Grad mode is off where `loss.backward()` runs: `with torch.no_grad()` (In[1], line 9) is around it.
# never says: must require grad | Nothing that
# %%
import torch, torch.nn as nn
class Trainer:
    def __init__(self, net):
        self.net = net
    def step(self, x):
        loss = self.net(x).pow(2).mean()
        loss.backward()
    def evaluate(self, x):
        with torch.no_grad():
            self.step(x)
trainer = Trainer(nn.Linear(3, 1))
# %%
trainer.step(torch.randn(4, 3))
trainer.evaluate(torch.randn(4, 3))
