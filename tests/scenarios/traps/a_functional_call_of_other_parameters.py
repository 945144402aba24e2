# verified:
# says: No path leads from `loss` to `net.weight`
# never says: allow_unused | materialize_grads
# %%
import torch
from torch.func import functional_call
net = torch.nn.Linear(2, 1)
def inner(x):
    fast = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}
    loss = functional_call(net, fast, (x,)).sum()
    return torch.autograd.grad(loss, tuple(net.parameters()))
# %%
grads = inner(torch.ones(3, 2))
