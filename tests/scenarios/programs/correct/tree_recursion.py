# title: A recursive tree network
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
join = nn.Linear(6, 3)
leaf = nn.Embedding(5, 3)
def encode(tree):
    if isinstance(tree, int):
        return leaf(torch.tensor(tree))
    left, right = map(encode, tree)
    return torch.tanh(join(torch.cat([left, right])))
# %%
opt = torch.optim.SGD([*join.parameters(), *leaf.parameters()], 0.1)
for tree in [((0, 1), 2), (3, (4, (1, 0))), ((2, 2), (3, 3))]:
    opt.zero_grad()
    encode(tree).sum().backward()
    opt.step()
