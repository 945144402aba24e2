# title: Every loss is appended to a list that the class holds
# kind: leak
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

class Meter:
    losses = []

    def update(self, loss):
        self.losses.append(loss)

    def average(self):
        return sum(self.losses) / len(self.losses)

def train(net, meter, epochs):
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(epochs):
        for x in torch.randn(3, 4, 2):
            loss = net(x).exp().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.update(loss)
# %%
train(nn.Linear(2, 2), Meter(), 4)
print(Meter().average())
