# title: namedtuples of loss and output collected over cells run again
# kind: leak
# truth: measured.json
# %%
from collections import namedtuple
import torch
torch.manual_seed(0)
Result = namedtuple("Result", "loss output")
w = torch.randn(3, requires_grad=True)
results = []
# %%
def run_once(x):
    out = (w * x).exp()
    loss = out.sum()
    loss.backward()
    results.append(Result(loss, out))
# %%
for x in torch.randn(5, 3):
    run_once(x)
