# title: MAML: inner gradients with create_graph, one outer backward per task batch
# kind: ok
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
theta = [torch.randn(2, 4, requires_grad=True), torch.zeros(4, requires_grad=True), torch.randn(4, 1, requires_grad=True)]
meta = torch.optim.SGD(theta, 0.01)
def net(x, p):
    return torch.tanh(x @ p[0] + p[1]) @ p[2]
# %%
for episode in range(3):
    meta.zero_grad()
    total = 0.0
    for task in range(2):
        fast = theta
        x, y = torch.randn(6, 2), torch.randn(6, 1)
        for _ in range(2):
            inner = (net(x, fast) - y).square().mean()
            grads = torch.autograd.grad(inner, fast, create_graph=True)
            fast = [p - 0.1 * g for p, g in zip(fast, grads)]
        total = total + (net(x, fast) - y).square().mean()
    total.backward()
    meta.step()
