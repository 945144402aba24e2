# title: A helper in another cell divides its argument in place
# kind: inplace
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
raw = torch.randn(4, requires_grad=True)
def normalise(t):
    t /= t.sum()
    return t
# %%
weights = raw.exp()
weights = normalise(weights)
# %%
weights.square().sum().backward()
