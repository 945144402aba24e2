# verified: out_of_place
# says: needs `path` as it was; it has been modified in place.
# %%
import torch
torch.manual_seed(0)
# %%
drift = torch.zeros(2, requires_grad=True)
def roll(start, n):
    path = torch.zeros(n + 1, 2)
    path[0] = start
    for t in range(n):
        x, v = path[t].unbind(-1)
        path[t + 1] = path[t] + 0.1 * (torch.stack([v, -torch.sin(x) * v]) + drift)
    return path
# %%
path = roll(torch.tensor([1.0, 0.5]), 4)
path.pow(2).mean().backward()
