# verified:
# says: which grad does not have. Its name is `retain_graph`
# %%
import torch
from torch.autograd import Variable
x = Variable(torch.ones(3), requires_grad=True)
# %%
def slope(y):
    return torch.autograd.grad(y, x, keep_graph=False)[0]
slope((x ** 2).sum())
