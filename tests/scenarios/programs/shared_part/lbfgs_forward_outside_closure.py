# title: LBFGS closure whose forward pass stands outside
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
c = torch.ones(2, requires_grad=True)
solver = torch.optim.LBFGS([c], max_iter=3)
misfit = (c.exp() - torch.tensor([2.0, 3.0])).square().sum()
# %%
def closure():
    solver.zero_grad()
    misfit.backward()
    return misfit
solver.step(closure)
