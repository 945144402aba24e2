# verified: out_of_place clone_before_inplace
# %%
import torch
w = torch.ones(3, requires_grad=True)
(w ** 3).sum().backward(create_graph=True)
m = w.grad.pow(2).sum()
w.grad.zero_()
# %%
m.backward()
