# verified: retain_graph_earlier_call
# %%
import torch
x = torch.ones(3, requires_grad=True)
y = (x ** 3).sum()
y.backward(create_graph=True)
l = x.grad.pow(2).sum()
l.backward()
# %%
m = x.grad.pow(2).sum()
m.backward()
