# verified:
# says: `opt.step()` (In[2], line 5)
# never says: allow_unused | materialize_grads
# %%
import torch
policy = torch.nn.Linear(2, 1)
temperature = torch.ones(1, requires_grad=True)
opt = torch.optim.SGD(policy.parameters(), lr=0.1)
x = torch.ones(3, 2)
# %%
for _ in range(2):
    opt.zero_grad()
    inner = (policy(x) / temperature).pow(2).mean()
    inner.backward(retain_graph=True)
    opt.step()
    outer = policy(x).mean()
    grad, = torch.autograd.grad(outer, temperature)
