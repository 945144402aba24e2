# verified:
# never says: cleared before a step
# %%
import torch

torch.manual_seed(0)
shared = torch.nn.Linear(4, 2)
adam = torch.optim.Adam(shared.parameters(), lr=0.1)
x = torch.randn(3, 4)
# %%
for epoch in range(4):
    gradients = []
    out = shared(x)
    for task in range(2):
        adam.zero_grad()
        out[:, task].pow(2).mean().backward(retain_graph=task == 0)
        gradients.append([p.grad.clone() for p in shared.parameters()])
    for p, first, second in zip(shared.parameters(), *gradients):
        p.grad = torch.where((first * second).sum() < 0, second, first + second)
    adam.step()
