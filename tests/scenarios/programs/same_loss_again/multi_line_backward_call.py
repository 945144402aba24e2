# title: torch.autograd.backward over several lines
# kind: second_backward
# truth: measured.json
# %%
import torch
w = torch.ones(3, requires_grad=True)
base = w.exp()
one, two = base.sum(), base.prod()
# %%
torch.autograd.backward(
    [one],
)
# %%
torch.autograd.backward(
    two
)
