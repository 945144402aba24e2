# title: A helper already runs backward; the loop runs it again
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), 0.1)
    def compute(self, x):
        self.opt.zero_grad()
        loss = self.model(x).tanh().mean()
        loss.backward()
        return loss
trainer = Trainer(nn.Linear(3, 1))
# %%
for x in torch.randn(3, 4, 3):
    loss = trainer.compute(x)
    loss.backward()
    trainer.opt.step()
