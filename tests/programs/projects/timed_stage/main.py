import torch

from model import Pair

torch.manual_seed(0)
net = Pair()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = net.left.weight.detach().clone()
for step in range(3):
    score = net(torch.randn(4, 3), torch.randn(4, 3))
    loss = torch.relu(1 - score).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("moved", not torch.equal(before, net.left.weight))
