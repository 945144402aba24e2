# verified: recompute_in_loop
# says: `model._kept[0]` was built in In[1], line 18 | drop the test `self._kept is None`
# never says: stored by
# %%
import torch
from torch import nn

torch.manual_seed(0)


class Filter(nn.Module):
    def __init__(self, n=5):
        super().__init__()
        self.spread, self._kept = nn.Parameter(torch.eye(n) + 0.1 * torch.rand(n, n)), None

    def factored(self):
        u, s, v = torch.linalg.svd(self.spread @ self.spread.T)
        return u * s, v

    def forward(self, x):
        if self._kept is None:
            self._kept = self.factored()
        left, right = self._kept
        return x @ left @ right
# %%
model = Filter()
signal, wanted = torch.randn(8, 5), torch.randn(8, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    loss = (model(signal) - wanted).pow(2).mean()
    loss.backward()
    optimizer.step()
