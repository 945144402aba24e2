import torch

from layers import Block

torch.manual_seed(0)
block = Block()
before = block.lin.weight.clone()
optimizer = torch.optim.SGD(block.parameters(), lr=0.01)
loss = block(torch.randn(4, 3)).mean()
loss.backward()
optimizer.step()
print("moved", not torch.equal(before, block.lin.weight))
