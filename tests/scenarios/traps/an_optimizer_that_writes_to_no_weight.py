# verified:
# says: gives the name `theta` to a new tensor | in `Momentum.step` | Write to the parameter itself
# A speed that is updated in place is added to a name only.
# %%
import torch

torch.manual_seed(0)


class Momentum(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def step(self):
        for group in self.param_groups:
            for theta in group["params"]:
                memory = self.state[theta]
                speed = memory.setdefault("speed", torch.zeros_like(theta))
                speed.mul_(0.9).add_(theta.grad)
                theta = theta - group["lr"] * speed
# %%
filters = torch.nn.Conv1d(1, 4, 5)
signal = torch.randn(8, 1, 32)
opt = Momentum(filters.parameters(), lr=0.05)
for epoch in range(5):
    opt.zero_grad()
    energy = (filters(signal).pow(2) - 1).pow(2).mean()
    energy.backward()
    opt.step()
    print(energy.item())
