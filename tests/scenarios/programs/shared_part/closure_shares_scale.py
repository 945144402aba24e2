# title: A function made once closes over a tensor with a graph
# kind: second_backward
# truth: measured.json
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
