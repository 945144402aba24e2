# title: Losses kept in an attribute of a trainer object
# kind: leak
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Trainer:
    def __init__(self):
        self.net, self.history = nn.Linear(3, 1), []
        self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
    def fit(self, xs):
        for x in xs:
            loss = self.net(x).exp().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.history.append(loss)
# %%
trainer = Trainer()
trainer.fit(torch.randn(5, 4, 3))
