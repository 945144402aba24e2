# verified:
# says: No path leads from `loss` to `net.b.bias` | materialize_grads=True | It is made in In[1], line 6 | `net.a.weight`
# %%
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 1)
        self.b = torch.nn.Linear(2, 1)
    def forward(self, x):
        return self.a(x)
net = Net()
# %%
loss = net(torch.ones(3, 2)).sum()
penalty = sum(g.pow(2).sum() for g in torch.autograd.grad(loss, [net.a.weight, net.b.bias], create_graph=True))
penalty.backward()
