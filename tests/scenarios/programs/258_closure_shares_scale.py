# title: A function made once closes over a tensor with a graph
# kind: second_backward
# truth: 258_closure_shares_scale.json
# %%
import torch
torch.manual_seed(0)
def make(raw):
    scale = torch.nn.functional.softplus(raw)
    def objective(x):
        return (scale * x).sum().pow(2)
    return objective
raw = torch.zeros(3, requires_grad=True)
objective = make(raw)
# %%
for x in torch.randn(3, 3):
    objective(x).backward()
