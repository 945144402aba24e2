# verified: detach
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Trainer:
    def __init__(self):
        self.cell = nn.GRUCell(4, 8)
        self.opt = torch.optim.SGD(self.cell.parameters(), lr=0.1)
        self.state = torch.zeros(2, 8)
    def step(self, x):
        self.state = self.cell(x, self.state)
        loss = self.state.pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def fit(self, n):
        for _ in range(n):
            self.step(torch.randn(2, 4))
# %%
def main():
    trainer = Trainer()
    trainer.fit(3)
main()
