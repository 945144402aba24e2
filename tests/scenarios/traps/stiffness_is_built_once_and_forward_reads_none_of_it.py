# verified: recompute_in_loop
# says: Make `self.lower = torch.tril(self.raw)` (In[1], line 8) and `self.stiffness = self.lower @ self.lower.T`
# says: properties: whoever reads `self.lower` and `self.stiffness` gets it with a new graph.
# never says: .detach() | at the start of `forward`
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Spring(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.raw = nn.Parameter(torch.eye(n) + 0.1 * torch.randn(n, n))
        self.lower = torch.tril(self.raw)
        self.stiffness = self.lower @ self.lower.T

    def forward(self, x):
        return x + 1.0

    def energy(self, x):
        return (x @ self.stiffness * x).sum(1)

    def volume(self):
        return self.lower.diagonal().abs().log().sum()
spring = Spring(3)
opt = torch.optim.SGD(spring.parameters(), 0.01)
x = torch.randn(4, 3)
# %%
for step in range(4):
    loss = spring.energy(spring(x)).mean() - spring.volume()
    opt.zero_grad()
    loss.backward()
    opt.step()
