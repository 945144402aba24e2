# verified:
# says: `self.prices` is float64. | (In[1], line 8), by way of `self.prices` | where it is made | where it is used
# never says: `zero_grad`
# %%
import numpy as np, torch, torch.nn as nn
torch.manual_seed(0)


class Houses:
    def __init__(self, count):
        self.sizes = torch.as_tensor(np.random.rand(count, 3)).float()
        self.prices = torch.as_tensor(np.random.rand(count, 1))
        self.model, self.loss = nn.Linear(3, 1), nn.HuberLoss()

    def train(self, rounds):
        opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for _ in range(rounds):
            opt.zero_grad()
            misfit = self.loss(self.model(self.sizes), self.prices)
            misfit.backward()
            opt.step()
# %%
Houses(6).train(2)
