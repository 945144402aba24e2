# %%
N = 60
import torch


def train(steps):
    w = torch.ones(10, requires_grad=True)
    for _ in range(steps):
        total = torch.zeros(())
        for part in torch.randn(4, 10):
            loss = (w * part).exp().sum()
            loss.backward(retain_graph=True)
            total = total + loss
        w.grad = None
        total.backward()


# %%
train(N)
