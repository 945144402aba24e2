import torch

from gp import Rbf

kernel = Rbf()
before = kernel.log_scale.detach().clone()
optimizer = torch.optim.SGD(kernel.parameters(), lr=0.1)
x, y = torch.linspace(0, 1, 6), torch.randn(6)
for _ in range(3):
    noisy = kernel(x) + 0.1 * torch.eye(6)
    loss = (noisy @ y).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("moved", not torch.equal(before, kernel.log_scale))
