# title: torch.func inside, backward outside
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
from torch.func import functional_call, grad, vmap
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
outer = torch.optim.Adam(net.parameters(), 1e-2)

def task_loss(params, x, y):
    return (functional_call(net, params, (x,)) - y).square().mean()

def adapted(params, x, y, rate=0.1):
    slopes = grad(task_loss)(params, x, y)
    return {name: value - rate * slopes[name] for name, value in params.items()}
# %%
for step in range(3):
    x, y = torch.randn(4, 5, 2), torch.randn(4, 5, 1)
    params = dict(net.named_parameters())
    per_task = vmap(lambda a, b: task_loss(adapted(params, a, b), a, b), randomness="different")(x, y)
    outer.zero_grad()
    per_task.mean().backward()
    outer.step()
