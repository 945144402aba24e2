# verified: out_of_place
# says: modified a tensor in `acts['relu']`, a `ReLU` with `inplace=True`
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
acts = nn.ModuleDict({"relu": nn.ReLU(inplace=True), "elu": nn.ELU(inplace=True)})
lin = nn.Linear(3, 3)
def f(x, kind):
    return acts[kind](lin(x).exp())
# %%
loss = f(torch.randn(2, 3), "elu").sum() + f(torch.randn(2, 3), "relu").sum()
loss.backward()
