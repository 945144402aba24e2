# holder: total
# %%
N = 70
import torch


def train(steps):
    w = torch.ones(10, requires_grad=True)
    total = 0
    for _ in range(steps):
        loss = (w * torch.randn(10)).exp().sum()
        loss.backward()
        total += loss
    return float(total) / steps


# %%
print(train(N))
