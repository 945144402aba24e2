# title: A registered buffer remembers the hidden state with its graph
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.read = nn.Linear(3, 4), nn.Linear(4, 1)
        self.register_buffer("memory", torch.zeros(4))

    def forward(self, x):
        h = torch.tanh(self.encode(x))
        self.memory = 0.9 * self.memory + 0.1 * h.mean(0)
        return self.read(h * self.memory)

net = Memory()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
# %%
for x in torch.randn(4, 5, 3):
    loss = net(x).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
