import torch

from retrieval.tower import Tower

torch.manual_seed(0)
tower = Tower()
before = tower.embed.weight.clone()
optimizer = torch.optim.SGD(tower.parameters(), lr=0.5)
for _ in range(3):
    loss = tower(torch.randn(6, 5)).var(0).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("moved", not torch.equal(before, tower.embed.weight))
